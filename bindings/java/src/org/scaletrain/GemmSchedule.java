package org.scaletrain;

/** A wish for a plan; 0, or what is not set: the library chooses. */
public final class GemmSchedule {
  private final org.scaletrain.internal.GemmSchedule raw;

  /** No wish. */
  public GemmSchedule() {
    org.scaletrain.internal.NativeLibrary.require();
    raw = new org.scaletrain.internal.GemmSchedule();
  }

  /** Threads of a run. */
  public GemmSchedule threads(int threads) {
    raw.setThreads(threads);
    return this;
  }

  /** What stays in the caches. */
  public GemmSchedule tile(long m, long n, long k) {
    raw.setTile_m(m);
    raw.setTile_n(n);
    raw.setTile_k(k);
    return this;
  }

  /** What a thread does at once. */
  public GemmSchedule block(long m, long n) {
    raw.setBlock_m(m);
    raw.setBlock_n(n);
    return this;
  }

  /** Rows that stay in registers. */
  public GemmSchedule microM(long rows) {
    raw.setMicro_m(rows);
    return this;
  }

  /** Which loop is outermost. */
  public GemmSchedule order(GemmOrder order) {
    raw.setOrder(order.ordinal());
    return this;
  }

  /** Whether B is laid out anew. */
  public GemmSchedule packing(GemmPacking packing) {
    raw.setPacking(packing.ordinal());
    return this;
  }

  /** Bytes that a run may use besides. */
  public GemmSchedule maxScratchBytes(long bytes) {
    raw.setMax_scratch_bytes(bytes);
    return this;
  }

  /** Measured for at most so many milliseconds when the plan is made; 0: never. */
  public GemmSchedule tuneMs(int milliseconds) {
    raw.setTune_ms(milliseconds);
    return this;
  }

  /** What multiplies. */
  public GemmSchedule library(GemmLibrary library) {
    raw.setLibrary(library.ordinal());
    return this;
  }

  org.scaletrain.internal.GemmSchedule raw() {
    return raw;
  }
}
