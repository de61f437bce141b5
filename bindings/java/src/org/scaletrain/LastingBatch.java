package org.scaletrain;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/**
 * A batch that the library reads beyond the call it is given to, until {@link #end}. It is kept, and Java's own arrays are seen as copies
 * in memory that stays where it is.
 */
final class LastingBatch {
  private final List<Batch> kept = new ArrayList<>();  // more than one when a program changes its mind
  private Batch given;
  private Batch seen;
  private boolean isNew;

  /** What the library is to read, in more than one call; the same memory for the same batch. */
  Object[] of(Batch batch) {
    return of(batch, kept.isEmpty());
  }

  /** The same, where each call reads all of it. */
  Object[] anew(Batch batch) {
    return of(batch, true);
  }

  private Object[] of(Batch batch, boolean again) {
    isNew = false;
    if (batch == null) return null;
    if (batch != given) {
      seen = batch.lasting();
      given = batch;
    } else if (again) {
      batch.copyTo(seen);  // its elements may be others by now
    }
    isNew = !kept.contains(seen);
    if (isNew) kept.add(seen);
    return seen.pairs();
  }

  /** The call that reads it. What is refused is not kept. */
  <T> T reading(Supplier<T> call) {
    boolean done = false;
    try {
      T result = call.get();
      done = true;
      return result;
    } finally {
      if (!done && isNew) {
        kept.remove(kept.size() - 1);
        given = null;
        seen = null;
      }
    }
  }

  /** The library reads the newest alone. */
  void only() {
    kept.removeIf(batch -> batch != seen);
  }

  /** The library has read it. What it was copied to stays for the next time. */
  void end() {
    kept.clear();
  }
}
