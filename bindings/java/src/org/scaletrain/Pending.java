package org.scaletrain;

import java.time.Duration;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;

/** What goes on after the call which began it. Its end is waited for when it is closed, or collected. */
public final class Pending extends Handle {
  private static final long NANOSECONDS = 1_000_000;  // of a millisecond

  // Those that arrays are lent to: Java must not free these before the work is done, whoever lets go of them.
  private static final Set<Pending> LENT = ConcurrentHashMap.newKeySet();

  private final org.scaletrain.internal.Pending raw;

  Pending(org.scaletrain.internal.Pending raw, Object keeps) {
    this.raw = raw;
    raw.keeps = keeps;
  }

  /** Of work on arrays, which stay as long as it is under way. */
  static Pending lending(org.scaletrain.internal.Pending raw, Object keeps) {
    LENT.removeIf(Pending::isOver);
    Pending made = new Pending(raw, keeps);
    LENT.add(made);
    return made;
  }

  private boolean isOver() {
    try {
      return raw.is_done();
    } catch (InvalidHandle closed) {
      return true;
    }
  }

  /** Until it is done. Throws what the work failed with, each time. */
  @OfC("st_pending_wait")
  public void await() {
    raw.wait_for_end();
  }

  /** At most so long; false: still under way. */
  @OfC("st_pending_wait")
  public boolean await(Duration most) {
    return raw.wait_for(Call.nanoseconds(given(most, "Pending.await")) / NANOSECONDS);
  }

  /** Whether it has ended, well or not. */
  @OfC("st_pending_poll")
  public boolean isDone() {
    return raw.is_done();
  }

  /** Ends as this does. Cancelling it stops the waiting alone. */
  public CompletableFuture<Void> toFuture() {
    return CompletableFuture.runAsync(this::await, Call.THREADS);
  }

  @Override
  @OfC("st_pending_destroy")
  public void close() {
    raw.close();
    LENT.remove(this);
  }
}
