package org.scaletrain;

import java.time.Duration;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;

/** An operation that runs in the background. Closing or collecting it waits until the operation has ended. */
public final class Pending extends Handle {
  private static final long NANOSECONDS = 1_000_000;  // per millisecond

  // Operations that borrow arrays. Java must not free the arrays before the operation ends, even if the program drops its references.
  private static final Set<Pending> BORROWING = ConcurrentHashMap.newKeySet();

  private final org.scaletrain.internal.Pending raw;

  Pending(org.scaletrain.internal.Pending raw, Object keeps) {
    this.raw = raw;
    raw.keeps = keeps;
  }

  /** An operation on arrays, which are kept alive while it runs. */
  static Pending lending(org.scaletrain.internal.Pending raw, Object keeps) {
    BORROWING.removeIf(Pending::isOver);
    Pending made = new Pending(raw, keeps);
    BORROWING.add(made);
    return made;
  }

  private boolean isOver() {
    try {
      return raw.is_done();
    } catch (InvalidHandle closed) {
      return true;
    }
  }

  /** Waits until the operation is done. Throws its error if it failed, on every call. */
  @OfC("st_pending_wait")
  public void await() {
    raw.wait_for_end();
  }

  /** The same, for at most this long; false if the operation is still running. */
  @OfC("st_pending_wait")
  public boolean await(Duration most) {
    return raw.wait_for(Call.nanoseconds(given(most, "Pending.await")) / NANOSECONDS);
  }

  /** Whether the operation has ended, successfully or not. */
  @OfC("st_pending_poll")
  public boolean isDone() {
    return raw.is_done();
  }

  /** A future that completes as this operation does. Cancelling the future does not cancel the operation. */
  public CompletableFuture<Void> toFuture() {
    return CompletableFuture.runAsync(this::await, Call.THREADS);
  }

  @Override
  @OfC("st_pending_destroy")
  public void close() {
    raw.close();
    BORROWING.remove(this);
  }
}
