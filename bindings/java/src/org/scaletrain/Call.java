package org.scaletrain;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/** A library call on a separate thread. Cancelling the future cancels the call at any time. */
final class Call<T> extends CompletableFuture<T> {
  /** Daemon threads, created on demand: a call may take hours, and the common pool is meant for short work. */
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

  /** Clamped to the range 0 to Long.MAX_VALUE, which is 292 years. */
  static long nanoseconds(Duration duration) {
    if (duration.isNegative()) return 0;
    return duration.compareTo(Duration.ofNanos(Long.MAX_VALUE)) < 0 ? duration.toNanos() : Long.MAX_VALUE;
  }

  /** {@code cancel} must end {@code work} while it runs, and must have no other effect. */
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

  /** Repeats the cancel until the call has ended: a cancel sent before the call has entered the library would be lost. */
  private void end() {
    synchronized (this) {
      if (!running || ended) return;
      cancel.run();
    }
    delayedExecutor(AGAIN_MS, TimeUnit.MILLISECONDS, THREADS).execute(this::end);
  }
}
