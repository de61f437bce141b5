package org.scaletrain;

/**
 * An object of the library. {@link #close}, or the end of a try block, gives it back at once; else it goes when Java collects it. In any
 * order, from any thread: what was made of it keeps what it needs.
 */
public abstract class Handle implements AutoCloseable {
  Handle() {}

  /**
   * Gives it back now. Closing twice is fine; any other call afterwards is an {@link InvalidHandle}. While another thread is in a call of
   * this object it is {@link Busy}, and nothing has changed.
   */
  @Override
  public abstract void close();

  static <T> T given(T value, String what) {
    if (value == null) throw new InvalidArgument(what + ": null is none");
    return value;
  }
}
