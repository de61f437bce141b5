package org.scaletrain;

/** Options of a {@link Predictor}. */
public final class PredictorOptions {
  private boolean shared;
  private int threads = 1;

  /** A snapshot of the weights and one thread per run. */
  public PredictorOptions() {}

  /** Uses the model's current weights instead of a snapshot. */
  public PredictorOptions shared() {
    shared = true;
    return this;
  }

  /** Threads of one run. */
  public PredictorOptions threads(int threads) {
    this.threads = threads;
    return this;
  }

  org.scaletrain.internal.PredictorOptions raw() {
    var raw = new org.scaletrain.internal.PredictorOptions();
    raw.setShared(shared);
    raw.setThreads(threads);
    return raw;
  }
}
