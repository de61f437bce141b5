package org.scaletrain;

/** A file or stream is damaged, or cannot be read or written. */
public final class CheckpointError extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** An error of the Java layer or of a callback, of which only the message is known. */
  public CheckpointError(String message) {
    super(Status.CORRUPT, message, Details.NONE);
  }

  CheckpointError(Status status, String message, Details details) {
    super(status, message, details);
  }
}
