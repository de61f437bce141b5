package org.scaletrain;

/** The statuses of the C ABI ({@code error.h}), in the order of their numbers. */
public enum Status {
  /** Success. */
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
  /** {@link RankFailed}: the ranks' calls differ. */
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

  /** An unknown number comes from a newer library. */
  static Status of(int number) {
    return number >= 0 && number < ALL.length ? ALL[number] : INTERNAL;
  }
}
