package org.scaletrain;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;
import java.util.Arrays;
import org.scaletrain.internal.Native;
import org.scaletrain.internal.NativeLibrary;

/**
 * An array of the program's: memory, what its elements are, its dims. Made once, used in any number of calls, from any thread.
 *
 * <p>Direct buffers ({@link #allocate}, {@code ByteBuffer.allocateDirect}) are never copied: the library reads and writes them where they
 * lie, from position to limit as they are when the Array is made, and they stay there as long as it uses them. Java's own arrays
 * ({@code float[]}) and buffers over them are copied in, and out again where a call writes; where the library keeps an array beyond a call
 * (parameters of an {@link Optimizer}, {@link Data#arrays}, {@link Tensor#wrap}, an {@link Accumulator}'s gradients) they are refused.
 */
public final class Array {
  // As java/native/jarray.hpp reads them: address, bytes, dtype, read only, rank, has strides, is on the heap, offset there, dims, strides.
  private static final int DIMS = 8;
  private static final int STRIDES = DIMS + 8;
  private final long[] header;
  private final Object heap;

  private final ArrayType type;
  private final Buffer memory;

  private Array(ArrayType type, Buffer memory, long address, Object heap, long heapOffset, long[] strides, boolean readOnly) {
    this.type = type;
    this.memory = memory;
    this.heap = heap;
    header = new long[STRIDES + 8];
    header[0] = address;
    header[1] = (long) memory.remaining() * bytesOf(memory);
    header[2] = type.dtype().number();
    header[3] = readOnly ? 1 : 0;
    header[4] = type.rank();
    header[5] = strides != null ? 1 : 0;
    header[6] = heap != null ? 1 : 0;
    header[7] = heapOffset;
    for (int i = 0; i < type.rank(); ++i) header[DIMS + i] = type.dim(i);
    for (int i = 0; strides != null && i < strides.length; ++i) header[STRIDES + i] = strides[i];
  }

  /** New memory outside of Java's heap, all zero, aligned to 64 bytes; it goes when nothing refers to it. */
  public static Array allocate(DType dtype, long... dims) {
    ArrayType type = new ArrayType(dtype, dims);
    for (long dim : dims) if (dim < 0) throw new InvalidArgument("Array.allocate: a dimension of " + type + " is below 0");
    long bytes = type.size() * dtype.bytes();
    if (type.size() > (Integer.MAX_VALUE - 128) / dtype.bytes())
      throw new Unsupported("Array.allocate: " + type + " has more bytes than a ByteBuffer can, 2 GiB");
    int whole = ((int) bytes + 63) / 64 * 64;  // a slice ends aligned too
    ByteBuffer room = ByteBuffer.allocateDirect(whole + 63).alignedSlice(64);
    return of(dtype, room.slice(0, (int) bytes).order(ByteOrder.nativeOrder()), dims);
  }

  /** Floats from the buffer's position to its limit; without dims, of rank 1. */
  public static Array of(FloatBuffer memory, long... dims) {
    return over(DType.F32, memory, memory.order(), dims);
  }

  /** Doubles from the buffer's position to its limit; without dims, of rank 1. */
  public static Array of(DoubleBuffer memory, long... dims) {
    return over(DType.F64, memory, memory.order(), dims);
  }

  /** 32-bit integers from the buffer's position to its limit; without dims, of rank 1. */
  public static Array of(IntBuffer memory, long... dims) {
    return over(DType.I32, memory, memory.order(), dims);
  }

  /** 64-bit integers from the buffer's position to its limit; without dims, of rank 1. */
  public static Array of(LongBuffer memory, long... dims) {
    return over(DType.I64, memory, memory.order(), dims);
  }

  /** bf16 or f16 elements, as their bits, from the buffer's position to its limit; without dims, of rank 1. */
  public static Array of(DType dtype, ShortBuffer memory, long... dims) {
    if (dtype != DType.BF16 && dtype != DType.F16) throw new InvalidArgument("Array.of: a ShortBuffer holds bf16 or f16, not " + dtype);
    return over(dtype, memory, memory.order(), dims);
  }

  /**
   * Elements of any dtype, as bytes from the buffer's position to its limit; without dims, of rank 1. Its byte order must be the machine's:
   * a new ByteBuffer's is not.
   */
  public static Array of(DType dtype, ByteBuffer memory, long... dims) {
    ByteOrder order = dtype.bytes() == 1 ? ByteOrder.nativeOrder() : memory.order();
    return over(dtype, memory, order, dims);
  }

  /** A Java array, copied by each call; without dims, of rank 1. */
  public static Array of(float[] values, long... dims) {
    return over(DType.F32, FloatBuffer.wrap(values), ByteOrder.nativeOrder(), dims);
  }

  /** A Java array, copied by each call; without dims, of rank 1. */
  public static Array of(double[] values, long... dims) {
    return over(DType.F64, DoubleBuffer.wrap(values), ByteOrder.nativeOrder(), dims);
  }

  /** A Java array, copied by each call; without dims, of rank 1. */
  public static Array of(int[] values, long... dims) {
    return over(DType.I32, IntBuffer.wrap(values), ByteOrder.nativeOrder(), dims);
  }

  /** A Java array, copied by each call; without dims, of rank 1. */
  public static Array of(long[] values, long... dims) {
    return over(DType.I64, LongBuffer.wrap(values), ByteOrder.nativeOrder(), dims);
  }

  /** A Java array of u8, copied by each call; without dims, of rank 1. */
  public static Array of(byte[] values, long... dims) {
    return over(DType.U8, ByteBuffer.wrap(values), ByteOrder.nativeOrder(), dims);
  }

  /** bf16 or f16 as their bits in a Java array, copied by each call; without dims, of rank 1. */
  public static Array of(DType dtype, short[] values, long... dims) {
    return of(dtype, ShortBuffer.wrap(values), dims);
  }

  private static Array over(DType dtype, Buffer memory, ByteOrder order, long[] dims) {
    if (order != ByteOrder.nativeOrder())
      throw new InvalidArgument("Array.of: the buffer's byte order is " + order + ", this machine's is " + ByteOrder.nativeOrder()
          + "; allocate with .order(ByteOrder.nativeOrder())");
    int step = bytesOf(memory);
    long bytes = (long) memory.remaining() * step;
    if (bytes % dtype.bytes() != 0)
      throw new InvalidArgument("Array.of: " + bytes + " bytes from position to limit are no whole number of " + dtype);
    long count = bytes / dtype.bytes();
    ArrayType type = new ArrayType(dtype, dims.length == 0 ? new long[] {count} : dims);
    for (long dim : dims) if (dim < 0) throw new InvalidArgument("Array.of: a dimension of " + type + " is below 0");
    if (type.size() != count)
      throw new InvalidArgument("Array.of: " + type + " has " + type.size() + " elements, and the memory has " + count);
    if (memory.isDirect()) {
      NativeLibrary.require();
      long address = Native.address_of(memory) + (long) memory.position() * step;
      return new Array(type, memory.slice(), address, null, 0, null, memory.isReadOnly());
    }
    if (!memory.hasArray())
      throw new InvalidArgument(
          "Array.of: a read-only buffer over a Java array shows no memory; give the array itself, or a direct buffer");
    return new Array(type, memory.slice(), 0, memory.array(), (long) (memory.arrayOffset() + memory.position()) * step, null, false);
  }

  /** The same memory with other dims of as many elements. */
  public Array reshape(long... dims) {
    requireDense("Array.reshape");
    ArrayType other = new ArrayType(type.dtype(), dims);
    for (long dim : dims) if (dim < 0) throw new InvalidArgument("Array.reshape: a dimension of " + other + " is below 0");
    if (other.size() != type.size()) throw new InvalidArgument("Array.reshape: " + other + " has another number of elements than " + type);
    return new Array(other, memory, header[0], heap, header[7], null, isReadOnly());
  }

  /** A part of the same memory: element (i, j) is the one at i strides[0] + j strides[1]. Strides are in elements, 0 or more. */
  public Array strided(long[] dims, long... strides) {
    requireDense("Array.strided");
    ArrayType part = new ArrayType(type.dtype(), dims);
    if (strides.length != dims.length)
      throw new InvalidArgument("Array.strided: " + part + " needs " + dims.length + " strides, not " + strides.length);
    long last = 0;
    boolean empty = false;
    for (int i = 0; i < dims.length; ++i) {
      if (dims[i] < 0 || strides[i] < 0)
        throw new InvalidArgument("Array.strided: dims and strides are 0 or more, not " + part + " by " + Arrays.toString(strides));
      empty |= dims[i] == 0;
      boolean isTooFar = dims[i] > 1 && strides[i] > (Long.MAX_VALUE - last) / (dims[i] - 1);
      last = isTooFar ? Long.MAX_VALUE : last + Math.max(0, dims[i] - 1) * strides[i];
    }
    if (!empty && last >= type.size())
      throw new InvalidArgument(
          "Array.strided: " + part + " by " + Arrays.toString(strides) + " reaches element " + last + ", and there are " + type.size());
    return new Array(part, memory, header[0], heap, header[7], strides.clone(), isReadOnly());
  }

  /** The same memory, which calls that write refuse. */
  public Array readOnly() {
    long[] strides = header[5] != 0 ? Arrays.copyOfRange(header, STRIDES, STRIDES + type.rank()) : null;
    return new Array(type, memory, header[0], heap, header[7], strides, true);
  }

  /**
   * A copy with elements of another dtype, for a call that takes that alone: integers that fit it, and anything that becomes floating,
   * rounded to the nearest. A {@code double[]} as F32, a {@code long[]} as I32, and so on.
   */
  @OfC("st_view_convert")
  public Array to(DType dtype) {
    Array made = allocate(Handle.given(dtype, "Array.to"), dims());
    Native.convert(this, made);
    return made;
  }

  /** Dtype and dims. */
  public ArrayType type() {
    return type;
  }

  /** What the elements are. */
  public DType dtype() {
    return type.dtype();
  }

  /** A copy. */
  public long[] dims() {
    return type.dims();
  }

  /** Number of elements. */
  public long size() {
    return type.size();
  }

  /** Whether the library sees the memory itself, instead of copies. */
  public boolean isDirect() {
    return heap == null;
  }

  /** Whether calls that write refuse it. */
  public boolean isReadOnly() {
    return header[3] != 0;
  }

  /** Where element 0 lies; 0 for Java's own arrays, which have no fixed place. */
  public long address() {
    return header[0];
  }

  // Elements, where they lie: each call gives a new buffer over the same memory.

  /** Of f32. */
  public FloatBuffer floats() {
    require(DType.F32);
    Buffer seen = seen();
    return seen instanceof FloatBuffer buffer ? buffer : bytes(seen).asFloatBuffer();
  }

  /** Of f64. */
  public DoubleBuffer doubles() {
    require(DType.F64);
    Buffer seen = seen();
    return seen instanceof DoubleBuffer buffer ? buffer : bytes(seen).asDoubleBuffer();
  }

  /** Of i32. */
  public IntBuffer ints() {
    require(DType.I32);
    Buffer seen = seen();
    return seen instanceof IntBuffer buffer ? buffer : bytes(seen).asIntBuffer();
  }

  /** Of i64. */
  public LongBuffer longs() {
    require(DType.I64);
    Buffer seen = seen();
    return seen instanceof LongBuffer buffer ? buffer : bytes(seen).asLongBuffer();
  }

  /** The bits of bf16 or f16. */
  public ShortBuffer shorts() {
    if (dtype() != DType.BF16 && dtype() != DType.F16)
      throw new InvalidArgument("Array: its elements are " + dtype() + ", not bf16 or f16");
    Buffer seen = seen();
    return seen instanceof ShortBuffer buffer ? buffer : bytes(seen).asShortBuffer();
  }

  /** Of any dtype; only when the array was made of bytes, as {@link #allocate}'s are. */
  public ByteBuffer bytes() {
    return bytes(seen());
  }

  /** A copy, of f32. */
  public float[] toFloats() {
    requireDense("Array.toFloats");
    FloatBuffer all = floats();
    float[] copy = new float[all.remaining()];
    all.get(copy);
    return copy;
  }

  /** A copy, of f64. */
  public double[] toDoubles() {
    requireDense("Array.toDoubles");
    DoubleBuffer all = doubles();
    double[] copy = new double[all.remaining()];
    all.get(copy);
    return copy;
  }

  /** A copy, of i32. */
  public int[] toInts() {
    requireDense("Array.toInts");
    IntBuffer all = ints();
    int[] copy = new int[all.remaining()];
    all.get(copy);
    return copy;
  }

  /** A copy, of i64. */
  public long[] toLongs() {
    requireDense("Array.toLongs");
    LongBuffer all = longs();
    long[] copy = new long[all.remaining()];
    all.get(copy);
    return copy;
  }

  @Override
  public String toString() {
    return type + (isDirect() ? "" : " on Java's heap") + (isReadOnly() ? ", read only" : "");
  }

  /** For what the library keeps beyond the call. */
  Array held(String call, String name) {
    if (heap != null)
      throw new InvalidArgument(call + ": the library keeps " + name + " beyond this call, and Java may move an array on its heap; give a "
          + "direct buffer (Array.allocate, ByteBuffer.allocateDirect with the machine's byte order)");
    return this;
  }

  /** For what the library reads beyond the call: itself, or a copy in direct memory. */
  Array lasting() {
    if (heap == null) return this;
    Array copy = allocate(DType.U8, header[1]);
    long[] strides = header[5] != 0 ? Arrays.copyOfRange(header, STRIDES, STRIDES + type.rank()) : null;
    Array lasting = new Array(type, copy.memory, copy.header[0], null, 0, strides, isReadOnly());
    copyTo(lasting);
    return lasting;
  }

  /** The elements of a Java array, to its {@link #lasting}. */
  void copyTo(Array lasting) {
    if (lasting == this) return;
    ByteBuffer to = ((ByteBuffer) lasting.memory).duplicate().order(ByteOrder.nativeOrder());
    Buffer from = memory.slice();
    if (from instanceof FloatBuffer buffer) to.asFloatBuffer().put(buffer);
    else if (from instanceof DoubleBuffer buffer) to.asDoubleBuffer().put(buffer);
    else if (from instanceof IntBuffer buffer) to.asIntBuffer().put(buffer);
    else if (from instanceof LongBuffer buffer) to.asLongBuffer().put(buffer);
    else if (from instanceof ShortBuffer buffer) to.asShortBuffer().put(buffer);
    else to.put((ByteBuffer) from);
  }

  private void require(DType dtype) {
    if (dtype() != dtype) throw new InvalidArgument("Array: its elements are " + dtype() + ", not " + dtype);
  }

  private void requireDense(String call) {
    if (header[5] != 0) throw new InvalidArgument(call + ": the array has strides");
  }

  private Buffer seen() {
    Buffer seen = memory.slice();
    if (seen instanceof ByteBuffer bytes) seen = bytes.order(ByteOrder.nativeOrder());
    if (!isReadOnly() || seen.isReadOnly()) return seen;
    if (seen instanceof ByteBuffer buffer) return buffer.asReadOnlyBuffer().order(ByteOrder.nativeOrder());
    if (seen instanceof FloatBuffer buffer) return buffer.asReadOnlyBuffer();
    if (seen instanceof DoubleBuffer buffer) return buffer.asReadOnlyBuffer();
    if (seen instanceof IntBuffer buffer) return buffer.asReadOnlyBuffer();
    if (seen instanceof LongBuffer buffer) return buffer.asReadOnlyBuffer();
    return ((ShortBuffer) seen).asReadOnlyBuffer();
  }

  private ByteBuffer bytes(Buffer seen) {
    if (seen instanceof ByteBuffer buffer) return buffer;
    throw new InvalidArgument("Array: it was made of a " + dtype() + " buffer, not of bytes");
  }

  private static int bytesOf(Buffer memory) {
    if (memory instanceof ByteBuffer) return 1;
    if (memory instanceof ShortBuffer) return 2;
    return memory instanceof FloatBuffer || memory instanceof IntBuffer ? 4 : 8;
  }
}
