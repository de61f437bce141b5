package org.scaletrain;

/** A name or a file that is not there. */
public final class NotFound extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** One of the Java layer's or of a program's callback: only the message is known. */
  public NotFound(String message) {
    super(Status.NOT_FOUND, message, Details.NONE);
  }

  NotFound(Status status, String message, Details details) {
    super(status, message, details);
  }
}
