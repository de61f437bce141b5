package org.scaletrain;

/** The call was ended by cancel(). */
public final class Cancelled extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** An error of the Java layer or of a callback, of which only the message is known. */
  public Cancelled(String message) {
    super(Status.CANCELLED, message, Details.NONE);
  }

  Cancelled(Status status, String message, Details details) {
    super(status, message, details);
  }
}
