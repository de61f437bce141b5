package org.scaletrain;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongConsumer;

/** Runs the library's tasks on threads of the program. */
@FunctionalInterface
public interface ParallelFor {
  /**
   * Must call {@code task.accept(i)} for every {@code 0 <= i < n}, in any order, on any threads, and return when all these calls have
   * returned. No task waits for another, so one thread is enough. May be called from several threads at once. The library runs the tasks that
   * it leaves out. An exception that it throws is rethrown by the library call that needed the tasks.
   */
  void run(long n, LongConsumer task);

  /**
   * Uses the executor's threads and the calling thread, which waits only for tasks that have begun. The caller may itself be a task of this
   * executor, and all threads of the executor may be busy.
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
