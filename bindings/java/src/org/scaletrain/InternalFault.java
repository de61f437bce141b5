package org.scaletrain;

/** A defect of the library. */
public final class InternalFault extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** One of the Java layer's or of a program's callback: only the message is known. */
  public InternalFault(String message) {
    super(Status.INTERNAL, message, Details.NONE);
  }

  InternalFault(Status status, String message, Details details) {
    super(status, message, details);
  }
}
