package org.scaletrain;

/** A rank that failed, or that does something else than the others. */
public final class RankFailed extends ScaleTrainException {
  private static final long serialVersionUID = 1;

  /** One of the Java layer's or of a program's callback: only the message is known. */
  public RankFailed(String message) {
    super(Status.RANK_FAILED, message, Details.NONE);
  }

  RankFailed(Status status, String message, Details details) {
    super(status, message, details);
  }
}
