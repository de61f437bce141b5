package org.scaletrain;

/** An infinity or NaN where there may be none. */
public final class NotFinite extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** One of the Java layer's or of a program's callback: only the message is known. */
  public NotFinite(String message) {
    super(Status.NOT_FINITE, message, Details.NONE);
  }

  NotFinite(Status status, String message, Details details) {
    super(status, message, details);
  }
}
