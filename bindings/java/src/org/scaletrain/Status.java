package org.scaletrain;

/** The statuses of the C ABI ({@code error.h}), in the order of their numbers. */
public enum Status {
  OK,
  INVALID_ARGUMENT,
  INVALID_HANDLE,
  WRONG_STATE,
  NOT_FOUND,
  OUT_OF_MEMORY,
  UNAVAILABLE,
  UNSUPPORTED,
  CANCELLED,
  BUSY,
  TIMEOUT,
  RANK_FAILED,
  RANK_MISMATCH,
  CORRUPT,
  IO,
  NOT_FINITE,
  CALLBACK,
  INTERNAL;

  private static final Status[] ALL = values();

  /** A number that is none of them is a newer library's. */
  static Status of(int number) {
    return number >= 0 && number < ALL.length ? ALL[number] : INTERNAL;
  }
}
