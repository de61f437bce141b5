package org.scaletrain;

/** The library does not support this. */
public final class Unsupported extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** An error of the Java layer or of a callback, of which only the message is known. */
  public Unsupported(String message) {
    super(Status.UNSUPPORTED, message, Details.NONE);
  }

  Unsupported(Status status, String message, Details details) {
    super(status, message, details);
  }
}
