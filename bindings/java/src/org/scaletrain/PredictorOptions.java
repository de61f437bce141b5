package org.scaletrain;

/** What a {@link Predictor} is made with. */
public final class PredictorOptions {
  private boolean shared;
  private int threads = 1;

  /** A snapshot of the weights, one thread a run. */
  public PredictorOptions() {}

  /** The model's weights as they are, instead of a snapshot. */
  public PredictorOptions shared() {
    shared = true;
    return this;
  }

  /** Of one run. */
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
