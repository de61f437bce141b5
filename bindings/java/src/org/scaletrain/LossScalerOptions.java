package org.scaletrain;

/** What a {@link LossScaler} is made with. Defaults are those of torch.amp.GradScaler, and a minimum. */
public final class LossScalerOptions {
  private final org.scaletrain.internal.LossScalerOptions raw;

  /** All defaults. */
  public LossScalerOptions() {
    org.scaletrain.internal.NativeLibrary.require();
    raw = new org.scaletrain.internal.LossScalerOptions();
  }

  /** true; false: the scale is 1, and gradients are looked at all the same. */
  public LossScalerOptions enabled(boolean enabled) {
    raw.setEnabled(enabled);
    return this;
  }

  /** true; false: the scale stays. */
  public LossScalerOptions dynamic(boolean dynamic) {
    raw.setDynamic(dynamic);
    return this;
  }

  /** 0: the context's. */
  public LossScalerOptions threads(int threads) {
    raw.setThreads(threads);
    return this;
  }

  /** 65536. */
  public LossScalerOptions initialScale(double scale) {
    raw.setInitial_scale(scale);
    return this;
  }

  /** 2. */
  public LossScalerOptions growthFactor(double factor) {
    raw.setGrowth_factor(factor);
    return this;
  }

  /** 0.5. */
  public LossScalerOptions backoffFactor(double factor) {
    raw.setBackoff_factor(factor);
    return this;
  }

  /** 2000 steps without an overflow. */
  public LossScalerOptions growthInterval(long steps) {
    raw.setGrowth_interval(steps);
    return this;
  }

  /** 1: it falls no lower. */
  public LossScalerOptions minimumScale(double scale) {
    raw.setMinimum_scale(scale);
    return this;
  }

  /** 1: the overflow of a row that backs off. */
  public LossScalerOptions hysteresis(long overflows) {
    raw.setHysteresis(overflows);
    return this;
  }

  /** false; true: a row ends with each step without an overflow, not with growth alone. */
  public LossScalerOptions consecutiveHysteresis(boolean consecutive) {
    raw.setConsecutive_hysteresis(consecutive);
    return this;
  }

  org.scaletrain.internal.LossScalerOptions raw() {
    return raw;
  }
}
