package org.scaletrain;

/** A call that comes out of turn. */
public final class WrongState extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** One of the Java layer's or of a program's callback: only the message is known. */
  public WrongState(String message) {
    super(Status.WRONG_STATE, message, Details.NONE);
  }

  WrongState(Status status, String message, Details details) {
    super(status, message, details);
  }
}
