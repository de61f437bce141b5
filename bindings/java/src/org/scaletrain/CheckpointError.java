package org.scaletrain;

/** A file or stream that cannot be read or written, or is damaged. */
public final class CheckpointError extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** One of the Java layer's or of a program's callback: only the message is known. */
  public CheckpointError(String message) {
    super(Status.CORRUPT, message, Details.NONE);
  }

  CheckpointError(Status status, String message, Details details) {
    super(status, message, details);
  }
}
