package org.scaletrain;

/** Options of a {@link LossScaler}. The defaults are those of torch.amp.GradScaler, plus a minimum scale. */
public final class LossScalerOptions {
  private final org.scaletrain.internal.LossScalerOptions raw;

  /** All defaults. */
  public LossScalerOptions() {
    org.scaletrain.internal.NativeLibrary.require();
    raw = new org.scaletrain.internal.LossScalerOptions();
  }

  /** Default true. If false, the scale is 1; gradients are still checked. */
  public LossScalerOptions enabled(boolean enabled) {
    raw.setEnabled(enabled);
    return this;
  }

  /** Default true. If false, the scale does not change. */
  public LossScalerOptions dynamic(boolean dynamic) {
    raw.setDynamic(dynamic);
    return this;
  }

  /** Threads. 0, the default, means the context's. */
  public LossScalerOptions threads(int threads) {
    raw.setThreads(threads);
    return this;
  }

  /** The first scale. Default 65536. */
  public LossScalerOptions initialScale(double scale) {
    raw.setInitial_scale(scale);
    return this;
  }

  /** Factor of a growing scale. Default 2. */
  public LossScalerOptions growthFactor(double factor) {
    raw.setGrowth_factor(factor);
    return this;
  }

  /** Factor of a shrinking scale. Default 0.5. */
  public LossScalerOptions backoffFactor(double factor) {
    raw.setBackoff_factor(factor);
    return this;
  }

  /** Number of consecutive steps without overflow after which the scale grows. Default 2000. */
  public LossScalerOptions growthInterval(long steps) {
    raw.setGrowth_interval(steps);
    return this;
  }

  /** Lower limit of a dynamic scale. Default 1. */
  public LossScalerOptions minimumScale(double scale) {
    raw.setMinimum_scale(scale);
    return this;
  }

  /** The overflow from which on the scale shrinks: 1, the default, is each; 2 is each but the first. */
  public LossScalerOptions hysteresis(long overflows) {
    raw.setHysteresis(overflows);
    return this;
  }

  /** Whether each step without overflow restarts the count of {@link #hysteresis}. Default false: only growth restarts it. */
  public LossScalerOptions consecutiveHysteresis(boolean consecutive) {
    raw.setConsecutive_hysteresis(consecutive);
    return this;
  }

  org.scaletrain.internal.LossScalerOptions raw() {
    return raw;
  }
}
