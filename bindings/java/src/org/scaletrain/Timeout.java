package org.scaletrain;

/** Something that took longer than it was given. */
public final class Timeout extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** One of the Java layer's or of a program's callback: only the message is known. */
  public Timeout(String message) {
    super(Status.TIMEOUT, message, Details.NONE);
  }

  Timeout(Status status, String message, Details details) {
    super(status, message, details);
  }
}
