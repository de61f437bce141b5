package org.scaletrain;

/** The object is closed. */
public final class InvalidHandle extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** An error of the Java layer or of a callback, of which only the message is known. */
  public InvalidHandle(String message) {
    super(Status.INVALID_HANDLE, message, Details.NONE);
  }

  InvalidHandle(Status status, String message, Details details) {
    super(status, message, details);
  }
}
