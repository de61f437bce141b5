package org.scaletrain;

import java.util.Arrays;

/** Dtype and dims of an array, of a value of a graph, or of a row of a field. Immutable. */
public final class ArrayType {
  private final DType dtype;
  private final long[] dims;
  private final long size;

  /** In a graph a first dimension below 0 is that many times the batch: {@link Graph#BATCH}. */
  public ArrayType(DType dtype, long... dims) {
    if (dtype == null) throw new InvalidArgument("ArrayType: a dtype is needed, not null");
    if (dims.length > 8) throw new InvalidArgument("ArrayType: rank " + dims.length + " is above 8");
    this.dtype = dtype;
    this.dims = dims.clone();
    size = product(dims);
    if (size < 0) throw new InvalidArgument("ArrayType: " + this + " has more elements than there are numbers");
  }

  /** -1 where there is no such number. */
  private static long product(long[] dims) {
    long product = 1;
    for (long dim : dims) {
      if (dim == Long.MIN_VALUE || (dim != 0 && product > Long.MAX_VALUE / Math.abs(dim))) return -1;
      product *= Math.abs(dim);
    }
    return product;
  }

  /** f32 of these dims. */
  public static ArrayType f32(long... dims) {
    return new ArrayType(DType.F32, dims);
  }

  /** What the elements are. */
  public DType dtype() {
    return dtype;
  }

  /** A copy. */
  public long[] dims() {
    return dims.clone();
  }

  /** How many dims there are. */
  public int rank() {
    return dims.length;
  }

  /** The i-th of them. */
  public long dim(int i) {
    return dims[i];
  }

  /** Number of elements; of one row where the first dimension is a batch's. */
  public long size() {
    return size;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof ArrayType that && dtype == that.dtype && Arrays.equals(dims, that.dims);
  }

  @Override
  public int hashCode() {
    return 31 * dtype.hashCode() + Arrays.hashCode(dims);
  }

  /** {@code f32[64, 1]}. */
  @Override
  public String toString() {
    return dtype + Arrays.toString(dims);
  }
}
