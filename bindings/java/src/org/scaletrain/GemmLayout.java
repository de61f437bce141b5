package org.scaletrain;

/**
 * How a matrix lies in its array. Strides are in elements; row and column 0: row-major without gaps; batch 0 behind them: one matrix behind
 * the other.
 *
 * @param dtype of the elements
 * @param row from a row to the next
 * @param column from a column to the next
 * @param batch from a matrix to the next
 * @param shared one matrix for the whole batch; not for C
 */
public record GemmLayout(DType dtype, long row, long column, long batch, boolean shared) {
  /** All of it. */
  public GemmLayout {
    Handle.given(dtype, "GemmLayout: dtype");
  }

  /** Row-major without gaps. */
  public GemmLayout(DType dtype) {
    this(dtype, 0, 0, 0, false);
  }

  /** One matrix for the whole batch. */
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
