package org.scaletrain;

/** The call is not allowed in the current state of the object. */
public final class WrongState extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** An error of the Java layer or of a callback, of which only the message is known. */
  public WrongState(String message) {
    super(Status.WRONG_STATE, message, Details.NONE);
  }

  WrongState(Status status, String message, Details details) {
    super(status, message, details);
  }
}
