package org.scaletrain;

/** A bug in the library. */
public final class InternalFault extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** An error of the Java layer or of a callback, of which only the message is known. */
  public InternalFault(String message) {
    super(Status.INTERNAL, message, Details.NONE);
  }

  InternalFault(Status status, String message, Details details) {
    super(status, message, details);
  }
}
