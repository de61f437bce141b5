package org.scaletrain;

/**
 * An object of the library. {@link #close}, or the end of a try block, frees it at once; otherwise it is freed when Java collects it.
 * Objects may be closed in any order, from any thread: an object keeps what it needs of the objects it was created from.
 */
public abstract class Handle implements AutoCloseable {
  Handle() {}

  /**
   * Frees the object. Closing twice is allowed; any other call on a closed object throws {@link InvalidHandle}. If another thread is in a
   * call of this object, it throws {@link Busy} and changes nothing.
   */
  @Override
  public abstract void close();

  static <T> T given(T value, String what) {
    if (value == null) throw new InvalidArgument(what + ": must not be null");
    return value;
  }
}
