package org.scaletrain;

/** How the elements of all ranks are combined. */
public enum ReduceOp {
  /** The sum in rank order, in fp32 (fp64 for f64 arrays), rounded once. */
  SUM,
  /** The sum divided by the number of ranks; only for floating types. */
  MEAN,
  /** The maximum; NaN if a rank has one. */
  MAX,
  /** The minimum; NaN if a rank has one. */
  MIN;

  /** The number in the C ABI. */
  int number() {
    return ordinal() + 1;
  }
}
