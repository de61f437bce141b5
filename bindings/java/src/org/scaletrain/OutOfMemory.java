package org.scaletrain;

/** More memory than there is, or than the context's memory limit allows. */
public final class OutOfMemory extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** One of the Java layer's or of a program's callback: only the message is known. */
  public OutOfMemory(String message) {
    super(Status.OUT_OF_MEMORY, message, Details.NONE);
  }

  OutOfMemory(Status status, String message, Details details) {
    super(status, message, details);
  }
}
