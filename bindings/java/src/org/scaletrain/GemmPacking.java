package org.scaletrain;

/** Whether B is packed for a product. */
public enum GemmPacking {
  /** The library's choice. */
  CHOOSE,
  /** B is packed. */
  PACKED,
  /** B is read in place. */
  IN_PLACE;

  private static final GemmPacking[] ALL = values();

  static GemmPacking of(int number) {
    return ALL[number];
  }
}
