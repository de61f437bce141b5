package org.scaletrain;

/** An object that another thread, or the callback's own caller, is inside of. */
public final class Busy extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** One of the Java layer's or of a program's callback: only the message is known. */
  public Busy(String message) {
    super(Status.BUSY, message, Details.NONE);
  }

  Busy(Status status, String message, Details details) {
    super(status, message, details);
  }
}
