package org.scaletrain;

/** A deadline has passed. */
public final class Timeout extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** An error of the Java layer or of a callback, of which only the message is known. */
  public Timeout(String message) {
    super(Status.TIMEOUT, message, Details.NONE);
  }

  Timeout(Status status, String message, Details details) {
    super(status, message, details);
  }
}
