package org.scaletrain;

/** Whether B is laid out anew for a product. */
public enum GemmPacking {
  CHOOSE,
  PACKED,
  IN_PLACE;

  private static final GemmPacking[] ALL = values();

  static GemmPacking of(int number) {
    return ALL[number];
  }
}
