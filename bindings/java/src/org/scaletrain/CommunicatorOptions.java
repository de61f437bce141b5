package org.scaletrain;

import java.time.Duration;

/** How long the ranks of a {@link Communicator} wait for each other, and whether there must be others. */
public final class CommunicatorOptions {
  private static final long NANOSECONDS = 1_000_000;  // of a millisecond

  private final org.scaletrain.internal.CommunicatorOptions raw;

  /** All defaults. */
  public CommunicatorOptions() {
    org.scaletrain.internal.NativeLibrary.require();
    raw = new org.scaletrain.internal.CommunicatorOptions();
  }

  /** One minute; that a wait may take without a byte from whom it waits for. */
  public CommunicatorOptions deadline(Duration most) {
    raw.setDeadline_milliseconds(milliseconds(most, "CommunicatorOptions.deadline"));
    return this;
  }

  /** One minute; that processes wait for each other at the start. */
  public CommunicatorOptions start(Duration most) {
    raw.setStart_milliseconds(milliseconds(most, "CommunicatorOptions.start"));
    return this;
  }

  /** False; for {@link Communicator#env}: where no launcher has started this process it is one rank alone, and not an error. */
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
