package org.scaletrain;

/** A value that must be finite is infinite or NaN. */
public final class NotFinite extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** An error of the Java layer or of a callback, of which only the message is known. */
  public NotFinite(String message) {
    super(Status.NOT_FINITE, message, Details.NONE);
  }

  NotFinite(Status status, String message, Details details) {
    super(status, message, details);
  }
}
