package org.scaletrain;

/** The call needs more memory than is available or than the context's memory limit allows. */
public final class OutOfMemory extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** An error of the Java layer or of a callback, of which only the message is known. */
  public OutOfMemory(String message) {
    super(Status.OUT_OF_MEMORY, message, Details.NONE);
  }

  OutOfMemory(Status status, String message, Details details) {
    super(status, message, details);
  }
}
