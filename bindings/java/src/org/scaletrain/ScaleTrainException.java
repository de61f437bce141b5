package org.scaletrain;

import java.io.Serializable;

/**
 * A failed call. The message names the operation, its values and the way out; the methods give further details. The subclasses are the kinds
 * of failure.
 */
public class ScaleTrainException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** Details of a failure besides its message. Unknown strings are null, unknown numbers are -1. */
  record Details(String op, String tensor, String file, String host, String collective, long offset, long step, int rank)
      implements Serializable {
    static final Details NONE = new Details(null, null, null, null, null, -1, -1, -1);
  }

  private final Status status;
  private final Details details;

  ScaleTrainException(Status status, String message, Details details) {
    super(message);
    this.status = status;
    this.details = details;
  }

  /** The status that the library returned. */
  public Status status() {
    return status;
  }

  /** The op that failed, or null. */
  public String op() {
    return details.op();
  }

  /** The tensor, parameter or input concerned, or null. */
  public String tensor() {
    return details.tensor();
  }

  /** The file concerned, or null. */
  public String file() {
    return details.file();
  }

  /** The machine that failed, or null. */
  public String host() {
    return details.host();
  }

  /** The collective that failed, or null. */
  public String collective() {
    return details.collective();
  }

  /** The position in the file, in bytes, or -1. */
  public long offset() {
    return details.offset();
  }

  /** The training step, or -1. */
  public long step() {
    return details.step();
  }

  /** The rank that failed, or -1. */
  public int rank() {
    return details.rank();
  }

  /** The exception for the library's last error, whose ways out name this package's methods. */
  static ScaleTrainException of(Status status, String said, Details details) {
    String message = MethodNames.in(said);
    return switch (status) {
      case INVALID_ARGUMENT -> new InvalidArgument(status, message, details);
      case INVALID_HANDLE -> new InvalidHandle(status, message, details);
      case WRONG_STATE -> new WrongState(status, message, details);
      case NOT_FOUND -> new NotFound(status, message, details);
      case OUT_OF_MEMORY -> new OutOfMemory(status, message, details);
      case UNAVAILABLE -> new Unavailable(status, message, details);
      case UNSUPPORTED -> new Unsupported(status, message, details);
      case CANCELLED -> new Cancelled(status, message, details);
      case BUSY -> new Busy(status, message, details);
      case TIMEOUT -> new Timeout(status, message, details);
      case RANK_FAILED, RANK_MISMATCH -> new RankFailed(status, message, details);
      case CORRUPT, IO -> new CheckpointError(status, message, details);
      case NOT_FINITE -> new NotFinite(status, message, details);
      case CALLBACK -> new CallbackError(status, message, details);
      case INTERNAL, OK -> new InternalFault(status, message, details);
    };
  }
}
