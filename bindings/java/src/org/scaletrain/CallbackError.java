package org.scaletrain;

/** A callback failed. An exception of a Java callback is rethrown as itself instead. */
public final class CallbackError extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** An error of the Java layer or of a callback, of which only the message is known. */
  public CallbackError(String message) {
    super(Status.CALLBACK, message, Details.NONE);
  }

  CallbackError(Status status, String message, Details details) {
    super(status, message, details);
  }
}
