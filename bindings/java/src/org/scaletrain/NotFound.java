package org.scaletrain;

/** A name or a file does not exist. */
public final class NotFound extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** An error of the Java layer or of a callback, of which only the message is known. */
  public NotFound(String message) {
    super(Status.NOT_FOUND, message, Details.NONE);
  }

  NotFound(Status status, String message, Details details) {
    super(status, message, details);
  }
}
