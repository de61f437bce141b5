package org.scaletrain;

/** Which loop of a product is outermost. */
public enum GemmOrder {
  CHOOSE,
  N_K_M,
  N_M_K;

  private static final GemmOrder[] ALL = values();

  static GemmOrder of(int number) {
    return ALL[number];
  }
}
