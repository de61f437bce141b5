package org.scaletrain;

import java.util.Arrays;

/** Dtype and dims of an array, of a graph value, or of one row of a field. Immutable. */
public final class ArrayType {
  private final DType dtype;
  private final long[] dims;
  private final long size;

  /** In a graph, a negative first dimension {@code -n} means n times the batch size: {@link Graph#BATCH}. */
  public ArrayType(DType dtype, long... dims) {
    if (dtype == null) throw new InvalidArgument("ArrayType: the dtype must not be null");
    if (dims.length > 8) throw new InvalidArgument("ArrayType: the rank must be at most 8, got " + dims.length);
    this.dtype = dtype;
    this.dims = dims.clone();
    size = product(dims);
    if (size < 0) throw new InvalidArgument("ArrayType: the number of elements of " + this + " does not fit in 64 bits");
  }

  /** -1 if the product overflows. */
  private static long product(long[] dims) {
    long product = 1;
    for (long dim : dims) {
      if (dim == Long.MIN_VALUE || (dim != 0 && product > Long.MAX_VALUE / Math.abs(dim))) return -1;
      product *= Math.abs(dim);
    }
    return product;
  }

  /** f32 with these dims. */
  public static ArrayType f32(long... dims) {
    return new ArrayType(DType.F32, dims);
  }

  /** The type of the elements. */
  public DType dtype() {
    return dtype;
  }

  /** A copy of the dims. */
  public long[] dims() {
    return dims.clone();
  }

  /** Number of dims. */
  public int rank() {
    return dims.length;
  }

  /** Dimension i. */
  public long dim(int i) {
    return dims[i];
  }

  /** Number of elements; if the first dimension is the batch, the number of elements per row. */
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

  /** For example {@code f32[64, 1]}. */
  @Override
  public String toString() {
    return dtype + Arrays.toString(dims);
  }
}
