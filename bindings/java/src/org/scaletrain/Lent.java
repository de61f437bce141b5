package org.scaletrain;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Objects;

/**
 * An array of the library's, lent to a callback: it is there until the callback returns, and for the callback's own thread. Using it later,
 * or from another thread, is a {@link WrongState}; to keep elements, copy them.
 */
public final class Lent {
  private final ArrayType type;
  private final long size;
  private final ByteBuffer memory;
  private final boolean writable;
  private final Thread owner = Thread.currentThread();
  private boolean over;

  Lent(ArrayType type, ByteBuffer memory, boolean writable) {
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

  /** Whether the callback is to write it, rather than to read it. */
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

  /** Copies elements from {@code at} on, of f32. */
  public void get(int at, float[] to) {
    of(DType.F32).asFloatBuffer().get(at, to);
  }

  /** Writes elements from {@code at} on, of f32. */
  public void set(int at, float[] from) {
    written(DType.F32).asFloatBuffer().put(at, from);
  }

  /** Copies elements from {@code at} on, of i32. */
  public void get(int at, int[] to) {
    of(DType.I32).asIntBuffer().get(at, to);
  }

  /** Writes elements from {@code at} on, of i32. */
  public void set(int at, int[] from) {
    written(DType.I32).asIntBuffer().put(at, from);
  }

  /** Copies elements from {@code at} on, of i64. */
  public void get(int at, long[] to) {
    of(DType.I64).asLongBuffer().get(at, to);
  }

  /** Writes elements from {@code at} on, of i64. */
  public void set(int at, long[] from) {
    written(DType.I64).asLongBuffer().put(at, from);
  }

  /** A copy of all, of f32. */
  public float[] toFloats() {
    float[] copy = new float[size()];
    get(0, copy);
    return copy;
  }

  /**
   * The memory itself, for any thread and without a check at each element, to be used <b>before the callback returns</b>. This is the one
   * place where this package cannot stop a program: touching the buffer later reads or writes memory that may be somebody else's, or none.
   */
  public ByteBuffer unsafeBuffer() {
    require();
    return memory.slice().order(ByteOrder.nativeOrder());
  }

  @Override
  public String toString() {
    return type + (writable ? ", lent" : ", lent to read");
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
      throw new WrongState("an array that was lent to a callback is used by another thread than the callback's; give it a copy");
    if (over) throw new WrongState("an array that was lent to a callback is used after the callback has returned; keep a copy instead");
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
    throw new InvalidArgument("this array is lent to be read");
  }
}
