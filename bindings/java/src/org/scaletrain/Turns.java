package org.scaletrain;

import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Predicate;

/**
 * One call at a time of an object that has state of Java's own. What a run's {@code onStep} calls is inside of that run; any other callback
 * finds the object busy.
 */
final class Turns {
  /** Ends with its call. */
  interface Turn extends AutoCloseable {
    @Override
    void close();
  }

  private final AtomicReference<Thread> holder = new AtomicReference<>();
  private boolean isInOnStep;  // the holder, which alone reads this

  Turn take(String call) {
    Thread here = Thread.currentThread();
    if (holder.get() == here && isInOnStep) {
      isInOnStep = false;
      return () -> isInOnStep = true;
    }
    if (!holder.compareAndSet(null, here))
      throw new Busy(call + ": another thread, or the caller of a callback, is in a call of this object; wait for it");
    return () -> holder.setRelease(null);
  }

  /** {@code onStep} with the holder's calls allowed. */
  Predicate<StepReport> inside(Predicate<StepReport> onStep) {
    if (onStep == null) return null;
    return report -> {
      isInOnStep = true;
      try {
        return onStep.test(report);
      } finally {
        isInOnStep = false;
      }
    };
  }
}
