package org.scaletrain;

import java.util.function.LongConsumer;
import org.scaletrain.internal.Native;

/** The tasks of one parallel-for of the library. They are valid until it returns; a later call throws. */
final class Tasks implements LongConsumer {
  private final long pointer;
  private int inside;
  private boolean over;

  Tasks(long pointer) {
    this.pointer = pointer;
  }

  @Override
  public void accept(long i) {
    synchronized (this) {
      if (over) throw new WrongState("ParallelFor: a task was run after the parallel-for that it belongs to has returned");
      ++inside;
    }
    try {
      Native.run_task(pointer, i);
    } finally {
      synchronized (this) {
        if (--inside == 0) notifyAll();
      }
    }
  }

  /** When this returns, no task is running and none will start. */
  synchronized void end() {
    over = true;
    boolean interrupted = false;
    while (inside > 0) {
      try {
        wait();
      } catch (InterruptedException later) {
        interrupted = true;
      }
    }
    if (interrupted) Thread.currentThread().interrupt();
  }
}
