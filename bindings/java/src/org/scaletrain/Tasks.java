package org.scaletrain;

import java.util.function.LongConsumer;
import org.scaletrain.internal.Native;

/** The tasks of one parallel-for of the library's, which are there until it returns. A call that comes later finds none. */
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
      if (over) throw new WrongState("the parallel-for has returned, and this is a task of it");
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

  /** When this returns no task runs, and none will. */
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
