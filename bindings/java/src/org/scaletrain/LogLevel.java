package org.scaletrain;

/** How much a record of the log matters. */
public enum LogLevel {
  /** Something failed. */
  ERROR,
  /** Something may not be as it was meant. */
  WARNING,
  /** What happens. */
  INFO,
  /** For those who look for a reason. */
  DEBUG;

  private static final LogLevel[] ALL = values();

  static LogLevel of(int number) {
    return number >= 0 && number < ALL.length ? ALL[number] : DEBUG;
  }
}
