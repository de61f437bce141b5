package org.scaletrain;

/**
 * What to multiply a loss with, and its gradients divided again where they lie. A step is scale, backward, unscale, clip, step, update;
 * what comes out of turn is a {@link WrongState}.
 */
public final class LossScaler extends Handle {
  final org.scaletrain.internal.LossScaler raw;

  /** With all defaults. */
  public LossScaler(Context context) {
    this(context, new LossScalerOptions());
  }

  /** As the options say. */
  @OfC("st_loss_scaler_create")
  public LossScaler(Context context, LossScalerOptions options) {
    raw = new org.scaletrain.internal.LossScaler(given(context, "LossScaler").raw, options.raw());
    raw.keeps = context.raw;
  }

  /** What to multiply the loss with; the same until {@link #update}. */
  @OfC("st_loss_scaler_scale")
  public double scale() {
    return raw.scale();
  }

  /** Divides all of the step's gradients in place; whether all are finite. */
  @OfC("st_loss_scaler_unscale")
  public boolean unscale(Array... gradients) {
    return raw.unscale(gradients);
  }

  /** Whether the optimizer is to run now. */
  @OfC("st_loss_scaler_step")
  public boolean step() {
    return raw.step();
  }

  /** Chooses the next scale; whether this step was skipped. */
  @OfC("st_loss_scaler_update")
  public boolean update() {
    return raw.update();
  }

  /** JSON, for a checkpoint; {@link #restore} goes on from it. */
  @OfC("st_loss_scaler_state")
  public String state() {
    return raw.state();
  }

  /** Goes on from a {@link #state}. */
  @OfC("st_loss_scaler_restore")
  public void restore(String state) {
    raw.restore(state);
  }

  @Override
  @OfC("st_loss_scaler_destroy")
  public void close() {
    raw.close();
  }
}
