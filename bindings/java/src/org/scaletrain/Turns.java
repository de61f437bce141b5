package org.scaletrain;

import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Predicate;

/**
 * Allows one call at a time on an object with state in the Java layer. Calls that a run's {@code onStep} makes count as part of that run; any
 * other callback finds the object busy.
 */
final class Turns {
  /** Held for the duration of a call. */
  interface Turn extends AutoCloseable {
    @Override
    void close();
  }

  private final AtomicReference<Thread> holder = new AtomicReference<>();
  private boolean isInOnStep;  // whether the holder is inside onStep; only the holder reads it

  Turn take(String call) {
    Thread here = Thread.currentThread();
    if (holder.get() == here && isInOnStep) {
      isInOnStep = false;
      return () -> isInOnStep = true;
    }
    if (!holder.compareAndSet(null, here))
      throw new Busy(call + ": another thread, or the call that invoked this callback, is in a call of this object; wait until it returns");
    return () -> holder.setRelease(null);
  }

  /** Wraps {@code onStep} so that the holder may make calls inside it. */
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
