package org.scaletrain;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/**
 * Keeps a batch alive that the library reads after the call that received it, until {@link #end}. Heap arrays are replaced by copies in
 * direct memory, which Java does not move.
 */
final class LastingBatch {
  private final List<Batch> kept = new ArrayList<>();  // more than one if a program passes different batches
  private Batch given;
  private Batch seen;
  private boolean isNew;

  /** The arrays for the library to read over several calls; the same batch yields the same memory. */
  Object[] of(Batch batch) {
    return of(batch, kept.isEmpty());
  }

  /** The same, for calls that each read the whole batch again. */
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
      batch.copyTo(seen);  // the elements may have changed
    }
    isNew = !kept.contains(seen);
    if (isNew) kept.add(seen);
    return seen.pairs();
  }

  /** Runs the call that reads the batch. If the call throws, a new batch is not kept. */
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

  /** Drops all but the newest batch, the only one that the library still reads. */
  void only() {
    kept.removeIf(batch -> batch != seen);
  }

  /** The library has read the batch. The copies are reused if the same batch comes again. */
  void end() {
    kept.clear();
  }
}
