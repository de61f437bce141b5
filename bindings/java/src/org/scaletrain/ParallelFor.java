package org.scaletrain;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongConsumer;

/** The program's threads, lent to the library. */
@FunctionalInterface
public interface ParallelFor {
  /**
   * Calls {@code task.accept(i)} for every {@code 0 <= i < n}, in any order, on any threads, and returns when all calls have returned. No
   * task waits for another, so one thread will do. Called from any thread, also from several at once. What it leaves out, the library does
   * itself; what it throws arrives at the call that was computed.
   */
  void run(long n, LongConsumer task);

  /**
   * By an executor's threads and the calling one, which waits only for what others have begun: so the executor may be the one that the
   * caller is a task of, and its threads may all be busy.
   */
  static ParallelFor on(ExecutorService executor) {
    Handle.given(executor, "ParallelFor.on");
    return (n, task) -> {
      AtomicLong next = new AtomicLong();
      Runnable some = () -> {
        for (long i = next.getAndIncrement(); i < n; i = next.getAndIncrement()) task.accept(i);
      };
      List<Future<?>> others = new ArrayList<>();
      for (long i = 1; i < n; ++i) others.add(executor.submit(some));
      some.run();
      for (Future<?> other : others) other.cancel(false);
    };
  }
}
