package org.scaletrain;

/** Something that the library does not do. */
public final class Unsupported extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** One of the Java layer's or of a program's callback: only the message is known. */
  public Unsupported(String message) {
    super(Status.UNSUPPORTED, message, Details.NONE);
  }

  Unsupported(Status status, String message, Details details) {
    super(status, message, details);
  }
}
