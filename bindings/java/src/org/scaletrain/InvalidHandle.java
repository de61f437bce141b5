package org.scaletrain;

/** An object that is closed. */
public final class InvalidHandle extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** One of the Java layer's or of a program's callback: only the message is known. */
  public InvalidHandle(String message) {
    super(Status.INVALID_HANDLE, message, Details.NONE);
  }

  InvalidHandle(Status status, String message, Details details) {
    super(status, message, details);
  }
}
