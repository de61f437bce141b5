package org.scaletrain;

/** Whether B is laid out anew for a product. */
public enum GemmPacking {
  /** The library's choice. */
  CHOOSE,
  /** B is laid out anew. */
  PACKED,
  /** B is read where it lies. */
  IN_PLACE;

  private static final GemmPacking[] ALL = values();

  static GemmPacking of(int number) {
    return ALL[number];
  }
}
