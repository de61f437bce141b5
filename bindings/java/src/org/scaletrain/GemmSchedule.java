package org.scaletrain;

/** A requested schedule. The library chooses whatever is 0 or not set. */
public final class GemmSchedule {
  private final org.scaletrain.internal.GemmSchedule raw;

  /** The library chooses everything. */
  public GemmSchedule() {
    org.scaletrain.internal.NativeLibrary.require();
    raw = new org.scaletrain.internal.GemmSchedule();
  }

  /** Threads of a run. */
  public GemmSchedule threads(int threads) {
    raw.setThreads(threads);
    return this;
  }

  /** The tile that one thread computes at a time. The bits depend on {@code k}, where the sum over K is cut. */
  public GemmSchedule tile(long m, long n, long k) {
    raw.setTile_m(m);
    raw.setTile_n(n);
    raw.setTile_k(k);
    return this;
  }

  /** The block that is packed at a time, for all threads. */
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

  /** Whether B is packed. */
  public GemmSchedule packing(GemmPacking packing) {
    raw.setPacking(packing.ordinal());
    return this;
  }

  /** Maximum scratch memory of a run, in bytes. */
  public GemmSchedule maxScratchBytes(long bytes) {
    raw.setMax_scratch_bytes(bytes);
    return this;
  }

  /** Milliseconds that creating the plan may spend on measuring tiles; 0 for no measuring. */
  public GemmSchedule tuneMs(int milliseconds) {
    raw.setTune_ms(milliseconds);
    return this;
  }

  /** The library that computes the product. */
  public GemmSchedule library(GemmLibrary library) {
    raw.setLibrary(library.ordinal());
    return this;
  }

  org.scaletrain.internal.GemmSchedule raw() {
    return raw;
  }
}
