package org.scaletrain.internal;

import java.lang.ref.Cleaner;

/** Runs an action after Java has collected an object. */
public final class Unreachable {
  private static final Cleaner CLEANER = Cleaner.create();

  private Unreachable() {}

  /** Runs {@code action} once, on a library thread, when {@code object} is unreachable. The action must not refer to the object. */
  public static Cleaner.Cleanable then(Object object, Runnable action) {
    return CLEANER.register(object, action);
  }
}
