package org.scaletrain;

import java.time.Duration;

/** Options of a {@link Communicator}: how long ranks wait for each other, and whether a single rank is allowed. */
public final class CommunicatorOptions {
  private static final long NANOSECONDS = 1_000_000;  // per millisecond

  private final org.scaletrain.internal.CommunicatorOptions raw;

  /** All defaults. */
  public CommunicatorOptions() {
    org.scaletrain.internal.NativeLibrary.require();
    raw = new org.scaletrain.internal.CommunicatorOptions();
  }

  /** Maximum time of a wait without a byte from the awaited rank. Default one minute. */
  public CommunicatorOptions deadline(Duration most) {
    raw.setDeadline_milliseconds(milliseconds(most, "CommunicatorOptions.deadline"));
    return this;
  }

  /** Maximum time that processes wait for each other at the start. Default one minute. */
  public CommunicatorOptions start(Duration most) {
    raw.setStart_milliseconds(milliseconds(most, "CommunicatorOptions.start"));
    return this;
  }

  /** For {@link Communicator#env}: a process that no launcher started becomes a single rank instead of an error. Default false. */
  public CommunicatorOptions allowSingle(boolean allow) {
    raw.setAllow_single(allow);
    return this;
  }

  org.scaletrain.internal.CommunicatorOptions raw() {
    return raw;
  }

  private static long milliseconds(Duration most, String call) {
    return Call.nanoseconds(Handle.given(most, call)) / NANOSECONDS;
  }
}
