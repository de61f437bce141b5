package org.scaletrain;

/** Which loop of a product is outermost. */
public enum GemmOrder {
  /** The library's choice. */
  CHOOSE,
  /** B is packed once; C is visited once for each tile of K. */
  N_K_M,
  /** A block of C is finished before the next begins. */
  N_M_K;

  private static final GemmOrder[] ALL = values();

  static GemmOrder of(int number) {
    return ALL[number];
  }
}
