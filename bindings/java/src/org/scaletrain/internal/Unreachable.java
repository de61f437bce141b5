package org.scaletrain.internal;

import java.lang.ref.Cleaner;

/** What happens when Java has collected an object. */
public final class Unreachable {
  private static final Cleaner CLEANER = Cleaner.create();

  private Unreachable() {}

  /** {@code action}, which must not refer to {@code object}, runs in a thread of ours when nothing refers to it any more, once. */
  public static Cleaner.Cleanable then(Object object, Runnable action) {
    return CLEANER.register(object, action);
  }
}
