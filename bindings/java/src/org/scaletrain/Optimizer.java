package org.scaletrain;

import java.util.Map;
import org.scaletrain.internal.Native;

/**
 * An optimizer as a separate part. It updates the program's own parameters in place and keeps their arrays, which must be direct, until it
 * is closed.
 */
public final class Optimizer extends Handle {
  private static final int COPIES = 2;

  private final org.scaletrain.internal.Optimizer raw;
  private final Lease lease;
  private final Object[] keeps;
  private volatile boolean closed;

  /** Settings as JSON, for example {@code {"optimizer": "adamw", "lr": 1e-3, "clip": 1, "groups": [...]}}. */
  @OfC("st_optimizer_create")
  public Optimizer(Context context, Batch parameters, String json) {
    Object[] held = given(parameters, "Optimizer").held("Optimizer").pairs();
    raw = new org.scaletrain.internal.Optimizer(given(context, "Optimizer").raw, json, held);
    keeps = new Object[] {context.raw, held, null};
    raw.keeps = keeps;
    var ending = raw;
    lease = new Lease(() -> {
      ending.close();
      ending.keeps = null;
    });
  }

  /** Settings as a map. */
  public Optimizer(Context context, Batch parameters, Map<String, ?> settings) {
    this(context, parameters, Json.text(settings));
  }

  /** Updates the parameters. Gradients are in the order of the parameters. */
  @OfC("st_optimizer_step")
  public OptimizerReport step(Array... gradients) {
    requireOpen("Optimizer.step");
    return (OptimizerReport) raw.step(gradients);
  }

  /**
   * The scaler's unscale and step and this optimizer's step in one call. Takes scaled gradients and does not change them. The scaler's
   * update() must follow.
   */
  @OfC("st_optimizer_step_scaled")
  public OptimizerReport stepScaled(LossScaler scaler, Array... gradients) {
    requireOpen("Optimizer.stepScaled");
    return (OptimizerReport) raw.step_scaled(given(scaler, "Optimizer.stepScaled").raw, gradients);
  }

  /**
   * Sets 16-bit copies of f32 parameters, which are then the master weights. The copies are written now and by every step. They are in the
   * order of the parameters, with null for a parameter without a copy; no arguments end the copying. The arrays must be direct and are kept
   * until the next call or until the optimizer is closed.
   */
  @OfC("st_optimizer_keep_copies")
  public synchronized void keepCopies(Array... copies) {
    requireOpen("Optimizer.keepCopies");
    Array[] held = copies.clone();
    for (Array copy : held) if (copy != null) copy.held("Optimizer.keepCopies", "the copies");
    raw.keep_copies(held);
    keeps[COPIES] = held;
    raw.keeps = keeps;
  }

  /** Changes a setting, such as lr, from the next step on. */
  @OfC("st_optimizer_set")
  public void set(String key, Object value) {
    requireOpen("Optimizer.set");
    raw.set(key, Json.text(value));
  }

  /**
   * The optimizer's own memory, for a checkpoint. To restore a checkpoint, write into these arrays. The memory stays valid while anything
   * refers to the arrays or their buffers, even after {@link #close}.
   */
  @OfC("st_optimizer_state_views")
  public Batch state() {
    synchronized (lease) {
      requireOpen("Optimizer.state");
      return lease.show(raw.state());
    }
  }

  /**
   * Returns the norm of all gradients together. If it is above {@code max}, the gradients are scaled down to that norm in place. If
   * {@code max} is 0 or the norm is not finite, they are not changed.
   */
  @OfC("st_clip_norm")
  public static double clipNorm(Context context, double max, Array... gradients) {
    return Native.clip_norm(given(context, "Optimizer.clipNorm").raw, gradients, max);
  }

  @Override
  @OfC("st_optimizer_destroy")
  public void close() {
    synchronized (lease) {
      if (closed) return;
      lease.close();
      closed = true;
    }
  }

  private void requireOpen(String call) {
    if (closed) throw new InvalidHandle(call + ": the optimizer is closed");
  }
}
