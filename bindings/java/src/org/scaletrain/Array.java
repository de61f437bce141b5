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
 * An array of the program: memory, dtype and dims. Create it once; any number of calls may use it, from any thread.
 *
 * <p>Direct buffers ({@link #allocate}, {@code ByteBuffer.allocateDirect}) are never copied. The library reads and writes them in place,
 * from the position to the limit that they have when the Array is created, and keeps them alive as long as it uses them. Heap arrays
 * ({@code float[]}) and buffers over them are copied in, and copied out if the call writes. Calls that keep an array after they return
 * (parameters of an {@link Optimizer}, {@link Data#arrays}, {@link Tensor#wrap}, an {@link Accumulator}'s gradients) refuse heap arrays.
 */
public final class Array {
  // Layout read by java/native/jarray.hpp: address, bytes, dtype, read-only, rank, has strides, is on the heap, heap offset, device, dims,
  // strides.
  private static final int DIMS = 9;
  private static final int STRIDES = DIMS + 8;
  private final long[] header;
  private final Object heap;

  private final ArrayType type;
  private final Buffer memory;

  private Array(ArrayType type, Buffer memory, long address, Object heap, long heapOffset, long[] strides, boolean readOnly,
      int device) {
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
    header[8] = device;
    for (int i = 0; i < type.rank(); ++i) header[DIMS + i] = type.dim(i);
    for (int i = 0; strides != null && i < strides.length; ++i) header[STRIDES + i] = strides[i];
  }

  /** New zeroed memory outside Java's heap, aligned to 64 bytes. It is freed when nothing refers to it. */
  public static Array allocate(DType dtype, long... dims) {
    ArrayType type = new ArrayType(dtype, dims);
    for (long dim : dims) if (dim < 0) throw new InvalidArgument("Array.allocate: " + type + " has a negative dimension");
    long bytes = type.size() * dtype.bytes();
    if (type.size() > (Integer.MAX_VALUE - 128) / dtype.bytes())
      throw new Unsupported("Array.allocate: " + type + " is larger than 2 GiB, the limit of a ByteBuffer");
    int whole = ((int) bytes + 63) / 64 * 64;  // alignedSlice also rounds the end down
    ByteBuffer room = ByteBuffer.allocateDirect(whole + 63).alignedSlice(64);
    return of(dtype, room.slice(0, (int) bytes).order(ByteOrder.nativeOrder()), dims);
  }

  /** Floats from the buffer's position to its limit. Without dims the array has rank 1. */
  public static Array of(FloatBuffer memory, long... dims) {
    return over(DType.F32, memory, memory.order(), dims);
  }

  /** Doubles from the buffer's position to its limit. Without dims the array has rank 1. */
  public static Array of(DoubleBuffer memory, long... dims) {
    return over(DType.F64, memory, memory.order(), dims);
  }

  /** 32-bit integers from the buffer's position to its limit. Without dims the array has rank 1. */
  public static Array of(IntBuffer memory, long... dims) {
    return over(DType.I32, memory, memory.order(), dims);
  }

  /** 64-bit integers from the buffer's position to its limit. Without dims the array has rank 1. */
  public static Array of(LongBuffer memory, long... dims) {
    return over(DType.I64, memory, memory.order(), dims);
  }

  /** The bits of bf16 or f16 elements from the buffer's position to its limit. Without dims the array has rank 1. */
  public static Array of(DType dtype, ShortBuffer memory, long... dims) {
    if (dtype != DType.BF16 && dtype != DType.F16) throw new InvalidArgument("Array.of: a ShortBuffer holds bf16 or f16, not " + dtype);
    return over(dtype, memory, memory.order(), dims);
  }

  /**
   * Elements of any dtype, stored as the bytes from the buffer's position to its limit. Without dims the array has rank 1. The buffer's byte
   * order must be the machine's; a new ByteBuffer is big-endian.
   */
  public static Array of(DType dtype, ByteBuffer memory, long... dims) {
    ByteOrder order = dtype.bytes() == 1 ? ByteOrder.nativeOrder() : memory.order();
    return over(dtype, memory, order, dims);
  }

  /** A Java array; each call copies it. Without dims the array has rank 1. */
  public static Array of(float[] values, long... dims) {
    return over(DType.F32, FloatBuffer.wrap(values), ByteOrder.nativeOrder(), dims);
  }

  /** A Java array; each call copies it. Without dims the array has rank 1. */
  public static Array of(double[] values, long... dims) {
    return over(DType.F64, DoubleBuffer.wrap(values), ByteOrder.nativeOrder(), dims);
  }

  /** A Java array; each call copies it. Without dims the array has rank 1. */
  public static Array of(int[] values, long... dims) {
    return over(DType.I32, IntBuffer.wrap(values), ByteOrder.nativeOrder(), dims);
  }

  /** A Java array; each call copies it. Without dims the array has rank 1. */
  public static Array of(long[] values, long... dims) {
    return over(DType.I64, LongBuffer.wrap(values), ByteOrder.nativeOrder(), dims);
  }

  /** A Java array of u8; each call copies it. Without dims the array has rank 1. */
  public static Array of(byte[] values, long... dims) {
    return over(DType.U8, ByteBuffer.wrap(values), ByteOrder.nativeOrder(), dims);
  }

  /** A Java array with the bits of bf16 or f16 elements; each call copies it. Without dims the array has rank 1. */
  public static Array of(DType dtype, short[] values, long... dims) {
    return of(dtype, ShortBuffer.wrap(values), dims);
  }

  /**
   * Memory of a device at an address, row-major without gaps: device n is number n - 1 of the context's kind. The program keeps it alive as
   * long as the library uses it. Its elements cannot be read here.
   */
  public static Array at(long address, int device, DType dtype, long... dims) {
    return at(ByteBuffer.allocate(0), address, device, dtype, dims);
  }

  /** The same; the array, and every array made from it, refers to {@code none}, a buffer of 0 bytes. */
  static Array at(ByteBuffer none, long address, int device, DType dtype, long... dims) {
    if (device < 1) throw new InvalidArgument("Array.at: device is " + device + "; it must be 1 or more, as the host's memory is a buffer");
    ArrayType type = new ArrayType(dtype, dims);
    for (long dim : dims) if (dim < 0) throw new InvalidArgument("Array.at: " + type + " has a negative dimension");
    Array made = new Array(type, none, address, null, 0, null, false, device);
    made.header[1] = type.size() * dtype.bytes();
    return made;
  }

  private static Array over(DType dtype, Buffer memory, ByteOrder order, long[] dims) {
    if (order != ByteOrder.nativeOrder())
      throw new InvalidArgument("Array.of: the buffer's byte order is " + order + ", this machine's is " + ByteOrder.nativeOrder()
          + "; allocate with .order(ByteOrder.nativeOrder())");
    int step = bytesOf(memory);
    long bytes = (long) memory.remaining() * step;
    if (bytes % dtype.bytes() != 0)
      throw new InvalidArgument("Array.of: " + bytes + " bytes from position to limit are not a multiple of the " + dtype.bytes()
          + " bytes of a " + dtype);
    long count = bytes / dtype.bytes();
    ArrayType type = new ArrayType(dtype, dims.length == 0 ? new long[] {count} : dims);
    for (long dim : dims) if (dim < 0) throw new InvalidArgument("Array.of: " + type + " has a negative dimension");
    if (type.size() != count)
      throw new InvalidArgument("Array.of: " + type + " has " + type.size() + " elements, but the memory holds " + count);
    if (memory.isDirect()) {
      NativeLibrary.require();
      long address = Native.address_of(memory) + (long) memory.position() * step;
      return new Array(type, memory.slice(), address, null, 0, null, memory.isReadOnly(), 0);
    }
    if (!memory.hasArray())
      throw new InvalidArgument(
          "Array.of: a read-only buffer over a Java array gives no access to its memory; pass the array itself or a direct buffer");
    return new Array(type, memory.slice(), 0, memory.array(), (long) (memory.arrayOffset() + memory.position()) * step, null, false, 0);
  }

  /** The same memory with other dims; the number of elements must not change. */
  public Array reshape(long... dims) {
    requireDense("Array.reshape");
    ArrayType other = new ArrayType(type.dtype(), dims);
    for (long dim : dims) if (dim < 0) throw new InvalidArgument("Array.reshape: " + other + " has a negative dimension");
    if (other.size() != type.size())
      throw new InvalidArgument("Array.reshape: " + other + " has " + other.size() + " elements, " + type + " has " + type.size());
    return with(new Array(other, memory, header[0], heap, header[7], null, isReadOnly(), device()));
  }

  /** A strided view of the same memory: element (i, j) is at i * strides[0] + j * strides[1]. Strides are in elements, 0 or more. */
  public Array strided(long[] dims, long... strides) {
    requireDense("Array.strided");
    ArrayType part = new ArrayType(type.dtype(), dims);
    if (strides.length != dims.length)
      throw new InvalidArgument("Array.strided: " + part + " needs " + dims.length + " strides, got " + strides.length);
    long last = 0;
    boolean empty = false;
    for (int i = 0; i < dims.length; ++i) {
      if (dims[i] < 0 || strides[i] < 0)
        throw new InvalidArgument(
            "Array.strided: dims and strides must be 0 or more, got " + part + " with strides " + Arrays.toString(strides));
      empty |= dims[i] == 0;
      boolean isTooFar = dims[i] > 1 && strides[i] > (Long.MAX_VALUE - last) / (dims[i] - 1);
      last = isTooFar ? Long.MAX_VALUE : last + Math.max(0, dims[i] - 1) * strides[i];
    }
    if (!empty && last >= type.size())
      throw new InvalidArgument(
          "Array.strided: " + part + " with strides " + Arrays.toString(strides) + " reaches element " + last + ", but the array has only "
          + type.size());
    return with(new Array(part, memory, header[0], heap, header[7], strides.clone(), isReadOnly(), device()));
  }

  /** The same memory, read-only: calls that would write to it refuse it. */
  public Array readOnly() {
    return with(new Array(type, memory, header[0], heap, header[7], strides(), true, device()));
  }

  /**
   * The same array, saying whose memory it is: 0 the host's, n that of device n - 1. A call refuses a device that its context does not
   * have, and most take 0 only. An array in the memory of a device cannot become the host's.
   */
  public Array onDevice(int device) {
    if (device < 1 && isOutOfReach())
      throw new InvalidArgument("Array.onDevice: the array is in the memory of a device; device must be 1 or more, got " + device);
    return with(new Array(type, memory, header[0], heap, header[7], strides(), isReadOnly(), device));
  }

  /** With this array's bytes, which the buffer of a device's array has not. */
  private Array with(Array made) {
    made.header[1] = header[1];
    return made;
  }

  private long[] strides() {
    return header[5] != 0 ? Arrays.copyOfRange(header, STRIDES, STRIDES + type.rank()) : null;
  }

  /**
   * A copy converted to another dtype, for a call that takes only that one: a {@code double[]} as F32, a {@code long[]} as I32, and so on.
   * Integers must fit the new dtype; conversion to a floating dtype rounds to nearest.
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

  /** The type of the elements. */
  public DType dtype() {
    return type.dtype();
  }

  /** A copy of the dims. */
  public long[] dims() {
    return type.dims();
  }

  /** Number of elements. */
  public long size() {
    return type.size();
  }

  /** Whether the library uses the memory in place instead of copying it. */
  public boolean isDirect() {
    return heap == null;
  }

  /** Whether calls that would write to the array refuse it. */
  public boolean isReadOnly() {
    return header[3] != 0;
  }

  /** Whose memory it is: 0 the host's, n that of device n - 1. */
  public int device() {
    return (int) header[8];
  }

  /** The address of element 0; 0 for heap arrays, which Java may move. */
  public long address() {
    return header[0];
  }

  // Access to the elements in place: each call returns a new buffer over the same memory.

  /** The elements of an f32 array, in place. */
  public FloatBuffer floats() {
    require(DType.F32);
    Buffer seen = seen();
    return seen instanceof FloatBuffer buffer ? buffer : bytes(seen).asFloatBuffer();
  }

  /** The elements of an f64 array, in place. */
  public DoubleBuffer doubles() {
    require(DType.F64);
    Buffer seen = seen();
    return seen instanceof DoubleBuffer buffer ? buffer : bytes(seen).asDoubleBuffer();
  }

  /** The elements of an i32 array, in place. */
  public IntBuffer ints() {
    require(DType.I32);
    Buffer seen = seen();
    return seen instanceof IntBuffer buffer ? buffer : bytes(seen).asIntBuffer();
  }

  /** The elements of an i64 array, in place. */
  public LongBuffer longs() {
    require(DType.I64);
    Buffer seen = seen();
    return seen instanceof LongBuffer buffer ? buffer : bytes(seen).asLongBuffer();
  }

  /** The bits of a bf16 or f16 array, in place. */
  public ShortBuffer shorts() {
    if (dtype() != DType.BF16 && dtype() != DType.F16)
      throw new InvalidArgument("Array: the elements are " + dtype() + ", not bf16 or f16");
    Buffer seen = seen();
    return seen instanceof ShortBuffer buffer ? buffer : bytes(seen).asShortBuffer();
  }

  /** The elements of any dtype as bytes, in place. Works only if the array was created from bytes, as {@link #allocate} does. */
  public ByteBuffer bytes() {
    return bytes(seen());
  }

  /** A copy of an f32 array. */
  public float[] toFloats() {
    requireDense("Array.toFloats");
    FloatBuffer all = floats();
    float[] copy = new float[all.remaining()];
    all.get(copy);
    return copy;
  }

  /** A copy of an f64 array. */
  public double[] toDoubles() {
    requireDense("Array.toDoubles");
    DoubleBuffer all = doubles();
    double[] copy = new double[all.remaining()];
    all.get(copy);
    return copy;
  }

  /** A copy of an i32 array. */
  public int[] toInts() {
    requireDense("Array.toInts");
    IntBuffer all = ints();
    int[] copy = new int[all.remaining()];
    all.get(copy);
    return copy;
  }

  /** A copy of an i64 array. */
  public long[] toLongs() {
    requireDense("Array.toLongs");
    LongBuffer all = longs();
    long[] copy = new long[all.remaining()];
    all.get(copy);
    return copy;
  }

  @Override
  public String toString() {
    String place = device() != 0 ? " of device " + device() : isDirect() ? "" : " on Java's heap";
    return type + place + (isReadOnly() ? ", read only" : "");
  }

  /** This array, for a call whose library side keeps it after returning. Throws for a heap array. */
  Array held(String call, String name) {
    if (heap != null)
      throw new InvalidArgument(call + ": the library keeps " + name + " after this call, and Java may move a heap array; pass a "
          + "direct buffer (Array.allocate, or ByteBuffer.allocateDirect with the machine's byte order)");
    return this;
  }

  /** For arrays that the library reads after the call: this array if it is direct, else a copy in direct memory. */
  Array lasting() {
    if (heap == null) return this;
    Array copy = allocate(DType.U8, header[1]);
    Array lasting = new Array(type, copy.memory, copy.header[0], null, 0, strides(), isReadOnly(), device());
    copyTo(lasting);
    return lasting;
  }

  /** Copies the elements of a heap array to the copy that {@link #lasting} returned. */
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
    if (dtype() != dtype) throw new InvalidArgument("Array: the elements are " + dtype() + ", not " + dtype);
  }

  private void requireDense(String call) {
    if (header[5] != 0) throw new InvalidArgument(call + ": the array has strides");
  }

  /** Whether its address is one that only a device can follow. */
  private boolean isOutOfReach() {
    return memory.capacity() == 0 && header[1] > 0;
  }

  private Buffer seen() {
    if (isOutOfReach())
      throw new Unsupported("Array: " + this + " is in the memory of a device, which Java cannot read");
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
    throw new InvalidArgument("Array: bytes() needs an array created from bytes, and this one was created from a " + dtype() + " buffer");
  }

  private static int bytesOf(Buffer memory) {
    if (memory instanceof ByteBuffer) return 1;
    if (memory instanceof ShortBuffer) return 2;
    return memory instanceof FloatBuffer || memory instanceof IntBuffer ? 4 : 8;
  }
}
