package org.scaletrain;

/** How much a record of the log matters. */
public enum LogLevel {
  ERROR,
  WARNING,
  INFO,
  DEBUG;

  private static final LogLevel[] ALL = values();

  static LogLevel of(int number) {
    return number >= 0 && number < ALL.length ? ALL[number] : DEBUG;
  }
}
