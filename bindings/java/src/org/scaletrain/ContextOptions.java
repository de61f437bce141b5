package org.scaletrain;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.scaletrain.internal.NativeLibrary;

/** Options of a {@link Context}. An option that is not set has the library's default. */
public final class ContextOptions {
  private int threads;
  private String device = "cpu";
  private long memoryLimit;
  private LogListener log;
  private ParallelFor parallel;
  private String tuningCache;
  private boolean lateParameters;

  /** All defaults. */
  public ContextOptions() {}

  /** Threads of each trainer. 0 means the number of cores of this process. */
  public ContextOptions threads(int threads) {
    this.threads = threads;
    return this;
  }

  /** {@code cpu}; {@code reference}, which is slow and accumulates in double precision; NAME or NAME:INDEX of a plug-in's device. */
  public ContextOptions device(String device) {
    this.device = Handle.given(device, "ContextOptions.device");
    return this;
  }

  /** Limit in bytes of all buffers together. 0 means the memory of the machine. */
  public ContextOptions memoryLimit(long bytes) {
    memoryLimit = bytes;
    return this;
  }

  /** The listener that receives the log; null for no log. */
  public ContextOptions log(LogListener listener) {
    log = listener;
    return this;
  }

  /** The threads that compute; null for the library's own. */
  public ContextOptions parallel(ParallelFor parallel) {
    this.parallel = parallel;
    return this;
  }

  /** The file that caches measured tiles. */
  public ContextOptions tuningCache(Path file) {
    tuningCache = file.toString();
    return this;
  }

  /** Uses no tuning cache. Without this and {@link #tuningCache} the environment selects the file. */
  public ContextOptions noTuningCache() {
    tuningCache = "";
    return this;
  }

  /**
   * Models allocate their parameters on first use. A trainer in a group with zero 3, with zero 1 or 2 and 16-bit weights, or with
   * stages, then allocates only its rank's part.
   */
  public ContextOptions lateParameters() {
    lateParameters = true;
    return this;
  }

  org.scaletrain.internal.Context create() {
    NativeLibrary.require();
    var raw = new org.scaletrain.internal.ContextOptions();
    raw.setThreads(threads);
    raw.setDevice(device);
    raw.setMemory_limit(memoryLimit);
    raw.setLate_parameters(lateParameters);
    List<Object> kept = new ArrayList<>();
    if (log != null) raw.set_log(log);
    if (parallel != null) raw.set_parallel(parallel);
    if (tuningCache != null) raw.set_tuning_cache(tuningCache);
    kept.add(log);
    kept.add(parallel);
    var made = new org.scaletrain.internal.Context(raw);
    made.keeps = kept;  // the native side does not keep them alive
    return made;
  }
}
