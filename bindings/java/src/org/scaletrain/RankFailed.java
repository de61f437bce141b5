package org.scaletrain;

/** A rank failed, or its calls differ from those of the other ranks. */
public final class RankFailed extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** An error of the Java layer or of a callback, of which only the message is known. */
  public RankFailed(String message) {
    super(Status.RANK_FAILED, message, Details.NONE);
  }

  RankFailed(Status status, String message, Details details) {
    super(status, message, details);
  }
}
