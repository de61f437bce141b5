package org.scaletrain;

import java.util.ArrayList;
import java.util.List;

/**
 * A batch that the library reads beyond the call it is given to, until {@link #end}. It is kept, and Java's own arrays are seen as copies
 * in memory that stays where it is.
 */
final class LastingBatch {
  private final List<Batch> kept = new ArrayList<>();  // more than one when a program changes its mind
  private Batch given;
  private Batch seen;

  /** What the library is to read; the same memory for the same batch. */
  Object[] of(Batch batch) {
    if (batch == null) return null;
    if (batch != given) {
      seen = batch.lasting();
      given = batch;
    } else if (kept.isEmpty()) {
      batch.copyTo(seen);  // its elements may be others by now
    }
    if (!kept.contains(seen)) kept.add(seen);
    return seen.pairs();
  }

  /** The library has read it. What it was copied to stays for the next time. */
  void end() {
    kept.clear();
  }
}
