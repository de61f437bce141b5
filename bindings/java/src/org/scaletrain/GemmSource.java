package org.scaletrain;

/** Where a plan's tiles come from. */
public enum GemmSource {
  TABLE,
  WISH,
  CACHE,
  TUNED;

  private static final GemmSource[] ALL = values();

  static GemmSource of(int number) {
    return ALL[number];
  }
}
