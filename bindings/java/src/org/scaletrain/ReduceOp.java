package org.scaletrain;

/** What becomes of the elements that ranks bring. */
public enum ReduceOp {
  /** In the order of the ranks, in fp32 (of f64: fp64), rounded once. */
  SUM,
  /** The sum by the number of ranks; of floating types. */
  MEAN,
  /** NaN where a rank has one. */
  MAX,
  /** NaN where a rank has one. */
  MIN;

  /** The C ABI's. */
  int number() {
    return ordinal() + 1;
  }
}
