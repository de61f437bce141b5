package org.scaletrain;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Objects;

/**
 * An array of the library, borrowed by a callback. It is valid until the callback returns, and only on the callback's thread. Later use, or
 * use from another thread, throws {@link WrongState}. Copy the elements to keep them.
 */
public final class BorrowedArray {
  private final ArrayType type;
  private final long size;
  private final ByteBuffer memory;
  private final boolean writable;
  private final Thread owner = Thread.currentThread();
  private boolean over;

  BorrowedArray(ArrayType type, ByteBuffer memory, boolean writable) {
    this.type = type;
    this.size = type.size();
    this.memory = (writable ? memory : memory.asReadOnlyBuffer()).order(ByteOrder.nativeOrder());
    this.writable = writable;
  }

  /** Dtype and dims. */
  public ArrayType type() {
    return type;
  }

  /** Number of elements. */
  public int size() {
    return (int) size;
  }

  /** Whether the callback writes this array; otherwise it only reads it. */
  public boolean isWritable() {
    return writable;
  }

  /** Element i, of f32. */
  public float getFloat(int i) {
    return of(DType.F32).getFloat(4 * index(i));
  }

  /** Writes element i, of f32. */
  public void setFloat(int i, float value) {
    written(DType.F32).putFloat(4 * index(i), value);
  }

  /** Element i, of f64. */
  public double getDouble(int i) {
    return of(DType.F64).getDouble(8 * index(i));
  }

  /** Writes element i, of f64. */
  public void setDouble(int i, double value) {
    written(DType.F64).putDouble(8 * index(i), value);
  }

  /** Element i, of i32. */
  public int getInt(int i) {
    return of(DType.I32).getInt(4 * index(i));
  }

  /** Writes element i, of i32. */
  public void setInt(int i, int value) {
    written(DType.I32).putInt(4 * index(i), value);
  }

  /** Element i, of i64. */
  public long getLong(int i) {
    return of(DType.I64).getLong(8 * index(i));
  }

  /** Writes element i, of i64. */
  public void setLong(int i, long value) {
    written(DType.I64).putLong(8 * index(i), value);
  }

  /** Element i, of u8 or bool. */
  public byte getByte(int i) {
    return ofBytes().get(index(i));
  }

  /** Writes element i, of u8 or bool. */
  public void setByte(int i, byte value) {
    if (!writable) refuseWriting();
    ofBytes().put(index(i), value);
  }

  /** The bits of element i, of bf16 or f16. */
  public short getShort(int i) {
    return ofShorts().getShort(2 * index(i));
  }

  /** Writes the bits of element i, of bf16 or f16. */
  public void setShort(int i, short bits) {
    if (!writable) refuseWriting();
    ofShorts().putShort(2 * index(i), bits);
  }

  /** Copies f32 elements from index {@code at} on to {@code to}. */
  public void get(int at, float[] to) {
    of(DType.F32).asFloatBuffer().get(at, to);
  }

  /** Writes {@code from} to the f32 elements from index {@code at} on. */
  public void set(int at, float[] from) {
    written(DType.F32).asFloatBuffer().put(at, from);
  }

  /** Copies i32 elements from index {@code at} on to {@code to}. */
  public void get(int at, int[] to) {
    of(DType.I32).asIntBuffer().get(at, to);
  }

  /** Writes {@code from} to the i32 elements from index {@code at} on. */
  public void set(int at, int[] from) {
    written(DType.I32).asIntBuffer().put(at, from);
  }

  /** Copies i64 elements from index {@code at} on to {@code to}. */
  public void get(int at, long[] to) {
    of(DType.I64).asLongBuffer().get(at, to);
  }

  /** Writes {@code from} to the i64 elements from index {@code at} on. */
  public void set(int at, long[] from) {
    written(DType.I64).asLongBuffer().put(at, from);
  }

  /** A copy of all elements of an f32 array. */
  public float[] toFloats() {
    float[] copy = new float[size()];
    get(0, copy);
    return copy;
  }

  /**
   * The memory itself, without a check per element, for any thread, valid <b>only until the callback returns</b>. This is the only method
   * whose misuse this package cannot detect: a later access may crash or touch memory that is in use elsewhere.
   */
  public ByteBuffer unsafeBuffer() {
    require();
    return memory.slice().order(ByteOrder.nativeOrder());
  }

  @Override
  public String toString() {
    return type + (writable ? ", borrowed" : ", borrowed, read-only");
  }

  /** The callback has returned. */
  void end() {
    over = true;
  }

  private int index(int i) {
    return Objects.checkIndex(i, size());
  }

  private void require() {
    if (owner != Thread.currentThread())
      throw new WrongState("an array borrowed by a callback may only be used on the callback's thread; give other threads a copy");
    if (over) throw new WrongState("an array borrowed by a callback may not be used after the callback has returned; keep a copy instead");
  }

  private ByteBuffer of(DType dtype) {
    require();
    if (type.dtype() != dtype) throw new InvalidArgument("this array's elements are " + type.dtype() + ", not " + dtype);
    return memory;
  }

  private ByteBuffer written(DType dtype) {
    if (!writable) refuseWriting();
    return of(dtype);
  }

  private ByteBuffer ofBytes() {
    require();
    if (type.dtype().bytes() != 1) throw new InvalidArgument("this array's elements are " + type.dtype() + ", not u8 or bool");
    return memory;
  }

  private ByteBuffer ofShorts() {
    require();
    if (type.dtype().bytes() != 2) throw new InvalidArgument("this array's elements are " + type.dtype() + ", not bf16 or f16");
    return memory;
  }

  private static void refuseWriting() {
    throw new InvalidArgument("this borrowed array is read-only");
  }
}
