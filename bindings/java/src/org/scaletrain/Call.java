package org.scaletrain;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/** A call of the library in a thread of its own. Cancelling the future ends the call, whenever that is. */
final class Call<T> extends CompletableFuture<T> {
  /** Daemons, made when they are needed: a call may take hours, and the common pool is for short work. */
  static final Executor THREADS = Executors.newCachedThreadPool(work -> {
    Thread thread = new Thread(work, "scaletrain-call");
    thread.setDaemon(true);
    return thread;
  });
  private static final int AGAIN_MS = 20;

  private final Runnable cancel;
  private boolean running;
  private boolean ended;

  private Call(Runnable cancel) {
    this.cancel = cancel;
  }

  /** From 0 to what a long holds, which is 292 years. */
  static long nanoseconds(Duration duration) {
    if (duration.isNegative()) return 0;
    return duration.compareTo(Duration.ofNanos(Long.MAX_VALUE)) < 0 ? duration.toNanos() : Long.MAX_VALUE;
  }

  /** {@code cancel} ends {@code work} when that is under way, and nothing else. */
  static <T> CompletableFuture<T> start(Supplier<T> work, Runnable cancel) {
    Call<T> call = new Call<>(cancel);
    THREADS.execute(() -> call.run(work));
    return call;
  }

  private void run(Supplier<T> work) {
    synchronized (this) {
      if (isDone()) return;  // cancelled before it began
      running = true;
    }
    T result = null;
    Throwable failure = null;
    try {
      result = work.get();
    } catch (Throwable thrown) {
      failure = thrown;
    }
    synchronized (this) {
      ended = true;
    }
    if (failure != null) {
      completeExceptionally(failure);
    } else {
      complete(result);
    }
  }

  @Override
  public boolean cancel(boolean mayInterruptIfRunning) {
    boolean cancelled = super.cancel(mayInterruptIfRunning);
    if (cancelled) end();
    return cancelled;
  }

  /** A cancel that comes just before the call has reached the library would be lost: so again, until the call has ended. */
  private void end() {
    synchronized (this) {
      if (!running || ended) return;
      cancel.run();
    }
    delayedExecutor(AGAIN_MS, TimeUnit.MILLISECONDS, THREADS).execute(this::end);
  }
}
