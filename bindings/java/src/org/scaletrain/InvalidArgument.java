package org.scaletrain;

/** An argument has a value that the call does not accept. */
public final class InvalidArgument extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** An error of the Java layer or of a callback, of which only the message is known. */
  public InvalidArgument(String message) {
    super(Status.INVALID_ARGUMENT, message, Details.NONE);
  }

  InvalidArgument(Status status, String message, Details details) {
    super(status, message, details);
  }
}
