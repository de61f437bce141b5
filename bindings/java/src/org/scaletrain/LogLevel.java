package org.scaletrain;

/** The severity of a log record. */
public enum LogLevel {
  /** Something failed. */
  ERROR,
  /** Something may not be as intended. */
  WARNING,
  /** Normal events. */
  INFO,
  /** Details for diagnosis. */
  DEBUG;

  private static final LogLevel[] ALL = values();

  static LogLevel of(int number) {
    return number >= 0 && number < ALL.length ? ALL[number] : DEBUG;
  }
}
