package org.scaletrain;

/** What becomes of an epoch's last rows, where all ranks together would take more. */
public enum LastRows {
  /** Each row once: they are dealt out evenly, so some ranks have fewer, or none. */
  SHARE,
  /** No rank gets them. */
  DROP,
  /** Epochs have no end: the next one's first rows follow, as in a trainer's data. */
  JOIN;

  /** The C ABI's. */
  int number() {
    return ordinal() + 1;
  }
}
