package org.scaletrain;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.scaletrain.internal.NativeLibrary;

/** What a {@link Context} is made with; what is not set is the library's default. */
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

  /** Of each trainer; 0: this process's cores. */
  public ContextOptions threads(int threads) {
    this.threads = threads;
    return this;
  }

  /** {@code cpu}, or {@code reference}, which is slow and sums in double precision. */
  public ContextOptions device(String device) {
    this.device = Handle.given(device, "ContextOptions.device");
    return this;
  }

  /** Bytes of all buffers together; 0: what the machine has. */
  public ContextOptions memoryLimit(long bytes) {
    memoryLimit = bytes;
    return this;
  }

  /** Who gets the log; null: nobody. */
  public ContextOptions log(LogListener listener) {
    log = listener;
    return this;
  }

  /** Whose threads compute; null: the library's own. */
  public ContextOptions parallel(ParallelFor parallel) {
    this.parallel = parallel;
    return this;
  }

  /** The file of measured tiles. */
  public ContextOptions tuningCache(Path file) {
    tuningCache = file.toString();
    return this;
  }

  /** No file of measured tiles; without this and {@link #tuningCache} it is the environment's. */
  public ContextOptions noTuningCache() {
    tuningCache = "";
    return this;
  }

  /**
   * Models get their parameters when something asks for them: a trainer of zero 3 in a group, or of zero 1 and 2 with 16 bits, makes its
   * rank's pieces alone.
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
    made.keeps = kept;  // the native side only sees them
    return made;
  }
}
