package org.scaletrain.internal;

import java.lang.ref.Cleaner;

/**
 * Runs actions after Java has collected objects. While an action is outstanding or native code refers to Java objects, a shutdown hook is
 * registered. It keeps the class loader of these classes; afterwards the class loader can be collected, and the native library is unloaded with it.
 */
public final class Unreachable {
  private static final Cleaner CLEANER = Cleaner.create();
  private static final Thread ENDING = new Thread(Native::end, "scaletrain-end");
  private static long outstanding;
  private static boolean isRegistered;

  private Unreachable() {}

  /** Runs {@code action} once, on a library thread, when {@code object} is unreachable. The action must not refer to the object. */
  public static void then(Object object, Runnable action) {
    begin();
    CLEANER.register(object, () -> {
      try {
        action.run();
      } finally {
        end();
      }
    });
  }

  /** Removes the shutdown hook if nothing needs it. */
  public static synchronized void letGo() {
    if (!isRegistered || outstanding > 0 || Native.holds_objects()) return;
    isRegistered = false;
    try {
      Runtime.getRuntime().removeShutdownHook(ENDING);
    } catch (IllegalStateException itHasBegun) {
      // the JVM ends
    }
  }

  private static synchronized void begin() {
    ++outstanding;
    if (isRegistered) return;
    isRegistered = true;
    try {
      Runtime.getRuntime().addShutdownHook(ENDING);
    } catch (IllegalStateException tooLate) {
      Native.end();
    }
  }

  private static synchronized void end() {
    --outstanding;
    letGo();
  }
}
