package org.scaletrain;

/** A device, plug-in or library is not available. */
public final class Unavailable extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** An error of the Java layer or of a callback, of which only the message is known. */
  public Unavailable(String message) {
    super(Status.UNAVAILABLE, message, Details.NONE);
  }

  Unavailable(Status status, String message, Details details) {
    super(status, message, details);
  }
}
