package org.scaletrain;

/** A device, plug-in or library that is not here. */
public final class Unavailable extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** One of the Java layer's or of a program's callback: only the message is known. */
  public Unavailable(String message) {
    super(Status.UNAVAILABLE, message, Details.NONE);
  }

  Unavailable(Status status, String message, Details details) {
    super(status, message, details);
  }
}
