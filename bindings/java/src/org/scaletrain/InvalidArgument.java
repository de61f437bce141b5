package org.scaletrain;

/** A value that the call cannot take. */
public final class InvalidArgument extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** One of the Java layer's or of a program's callback: only the message is known. */
  public InvalidArgument(String message) {
    super(Status.INVALID_ARGUMENT, message, Details.NONE);
  }

  InvalidArgument(Status status, String message, Details details) {
    super(status, message, details);
  }
}
