package org.scaletrain;

/**
 * Loss scaling as a separate part: chooses the factor for the loss and divides the gradients by it, in place. A step is scale, backward,
 * unscale, clip, step, update; a call out of this order throws {@link WrongState}.
 */
public final class LossScaler extends Handle {
  final org.scaletrain.internal.LossScaler raw;

  /** With all defaults. */
  public LossScaler(Context context) {
    this(context, new LossScalerOptions());
  }

  /** With these options. */
  @OfC("st_loss_scaler_create")
  public LossScaler(Context context, LossScalerOptions options) {
    raw = new org.scaletrain.internal.LossScaler(given(context, "LossScaler").raw, options.raw());
    raw.keeps = context.raw;
  }

  /** The factor to multiply the loss with. It does not change until {@link #update}. */
  @OfC("st_loss_scaler_scale")
  public double scale() {
    return raw.scale();
  }

  /** Divides all gradients of the step by the scale, in place. Returns whether all are finite. */
  @OfC("st_loss_scaler_unscale")
  public boolean unscale(Array... gradients) {
    return raw.unscale(gradients);
  }

  /** Whether the optimizer should run now. */
  @OfC("st_loss_scaler_step")
  public boolean step() {
    return raw.step();
  }

  /** Chooses the next scale. Returns whether this step was skipped. */
  @OfC("st_loss_scaler_update")
  public boolean update() {
    return raw.update();
  }

  /** The state as JSON, for a checkpoint; {@link #restore} continues from it. */
  @OfC("st_loss_scaler_state")
  public String state() {
    return raw.state();
  }

  /** Continues from a {@link #state}. */
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
