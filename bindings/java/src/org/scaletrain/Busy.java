package org.scaletrain;

/** The object is in use: another thread, or the call that invoked this callback, is inside one of its methods. */
public final class Busy extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** An error of the Java layer or of a callback, of which only the message is known. */
  public Busy(String message) {
    super(Status.BUSY, message, Details.NONE);
  }

  Busy(Status status, String message, Details details) {
    super(status, message, details);
  }
}
