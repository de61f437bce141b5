package org.scaletrain;

/** A callback that failed; one of Java's arrives as its own exception instead. */
public final class CallbackError extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** One of the Java layer's or of a program's callback: only the message is known. */
  public CallbackError(String message) {
    super(Status.CALLBACK, message, Details.NONE);
  }

  CallbackError(Status status, String message, Details details) {
    super(status, message, details);
  }
}
