package org.scaletrain;

/**
 * The layout of a matrix in its array. Strides are in elements. If {@code row} and {@code column} are 0 the matrix is row-major without gaps;
 * if {@code batch} is 0 the matrices follow each other without gaps.
 *
 * @param dtype type of the elements
 * @param row stride from one row to the next
 * @param column stride from one column to the next
 * @param batch stride from one matrix to the next
 * @param shared whether the whole batch uses one matrix; not allowed for C
 */
public record GemmLayout(DType dtype, long row, long column, long batch, boolean shared) {
  /** With all components. */
  public GemmLayout {
    Handle.given(dtype, "GemmLayout: dtype");
  }

  /** Row-major without gaps. */
  public GemmLayout(DType dtype) {
    this(dtype, 0, 0, 0, false);
  }

  /** The same layout with one matrix for the whole batch. */
  public GemmLayout sharedByBatch() {
    return new GemmLayout(dtype, row, column, batch, true);
  }

  org.scaletrain.internal.GemmLayout raw() {
    var raw = new org.scaletrain.internal.GemmLayout();
    raw.setDtype(dtype.number());
    raw.setRow(row);
    raw.setColumn(column);
    raw.setBatch(batch);
    raw.setShared(shared);
    return raw;
  }
}
