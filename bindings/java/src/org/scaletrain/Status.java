package org.scaletrain;

/** The statuses of the C ABI ({@code error.h}), in the order of their numbers. */
public enum Status {
  /** It went well. */
  OK,
  /** {@link InvalidArgument}. */
  INVALID_ARGUMENT,
  /** {@link InvalidHandle}. */
  INVALID_HANDLE,
  /** {@link WrongState}. */
  WRONG_STATE,
  /** {@link NotFound}. */
  NOT_FOUND,
  /** {@link OutOfMemory}. */
  OUT_OF_MEMORY,
  /** {@link Unavailable}. */
  UNAVAILABLE,
  /** {@link Unsupported}. */
  UNSUPPORTED,
  /** {@link Cancelled}. */
  CANCELLED,
  /** {@link Busy}. */
  BUSY,
  /** {@link Timeout}. */
  TIMEOUT,
  /** {@link RankFailed}: a rank is gone. */
  RANK_FAILED,
  /** {@link RankFailed}: ranks do different things. */
  RANK_MISMATCH,
  /** {@link CheckpointError}: a file is damaged. */
  CORRUPT,
  /** {@link CheckpointError}: a file cannot be read or written. */
  IO,
  /** {@link NotFinite}. */
  NOT_FINITE,
  /** {@link CallbackError}. */
  CALLBACK,
  /** {@link InternalFault}. */
  INTERNAL;

  private static final Status[] ALL = values();

  /** A number that is none of them is a newer library's. */
  static Status of(int number) {
    return number >= 0 && number < ALL.length ? ALL[number] : INTERNAL;
  }
}
