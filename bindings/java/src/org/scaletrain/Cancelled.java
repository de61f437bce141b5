package org.scaletrain;

/** A call that cancel() ended. */
public final class Cancelled extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** One of the Java layer's or of a program's callback: only the message is known. */
  public Cancelled(String message) {
    super(Status.CANCELLED, message, Details.NONE);
  }

  Cancelled(Status status, String message, Details details) {
    super(status, message, details);
  }
}
