package org.scaletrain;

/** Where a plan's tiles come from. */
public enum GemmSource {
  /** The library's table. */
  TABLE,
  /** The program's request. */
  REQUESTED,
  /** The file of measured tiles. */
  CACHE,
  /** Measured when the plan was made. */
  TUNED;

  private static final GemmSource[] ALL = values();

  static GemmSource of(int number) {
    return ALL[number];
  }
}
