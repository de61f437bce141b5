package org.scaletrain;

/** Receives the library's log. */
@FunctionalInterface
public interface LogListener {
  /** Called once per record, from any thread. An exception that it throws is rethrown by the running call when that has finished. */
  void log(LogLevel level, String area, String text);
}
