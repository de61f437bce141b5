package org.scaletrain;

/** Gets what the library has to say. */
@FunctionalInterface
public interface LogListener {
  /** One call a record, from any thread. What it throws arrives at the call that was going on, when that is done. */
  void log(LogLevel level, String area, String text);
}
