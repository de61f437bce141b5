package org.scaletrain;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/** A library call on a separate thread. Cancelling the future cancels the call at any time. */
final class Call<T> extends CompletableFuture<T> {
  /**
   * Daemon threads, created on demand: a call may take hours, and the common pool is meant for short work. An idle thread keeps the class
   * loader, so it ends after a second.
   */
  static final Executor THREADS = new ThreadPoolExecutor(0, Integer.MAX_VALUE, 1, TimeUnit.SECONDS, new SynchronousQueue<>(), work -> {
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
    if (cancelled && !cancelOnce()) THREADS.execute(this::end);
    return cancelled;
  }

  /** Whether the call has ended or will not begin. */
  private synchronized boolean cancelOnce() {
    if (!running || ended) return true;
    cancel.run();
    return false;
  }

  /**
   * Repeats the cancel until the call has ended: a cancel sent before the call has entered the library would be lost. Does not use
   * delayedExecutor: Java's thread for delays lives for ever and would keep the class loader of the code that started it.
   */
  private void end() {
    try {
      do {
        TimeUnit.MILLISECONDS.sleep(AGAIN_MS);
      } while (!cancelOnce());
    } catch (InterruptedException never) {
      Thread.currentThread().interrupt();
    }
  }
}
