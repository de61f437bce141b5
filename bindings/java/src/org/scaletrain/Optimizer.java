package org.scaletrain;

import java.util.Map;
import org.scaletrain.internal.Native;

/**
 * An optimizer by itself, over the program's own parameters, which it updates where they lie and keeps until it is closed: direct arrays
 * alone.
 */
public final class Optimizer extends Handle {
  private static final int COPIES = 2;

  private final org.scaletrain.internal.Optimizer raw;
  private final Lease lease;
  private final Object[] keeps;
  private volatile boolean closed;

  /** JSON: {@code {"optimizer": "adamw", "lr": 1e-3, "clip": 1, "groups": [...]}}. */
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

  /** The same as a map. */
  public Optimizer(Context context, Batch parameters, Map<String, ?> settings) {
    this(context, parameters, Json.text(settings));
  }

  /** Gradients in the order of the parameters. */
  @OfC("st_optimizer_step")
  public OptimizerReport step(Array... gradients) {
    requireOpen("Optimizer.step");
    return (OptimizerReport) raw.step(gradients);
  }

  /** The scaler's unscale and step, and this step, in one: of scaled gradients, which stay as they are. Its update() comes next. */
  @OfC("st_optimizer_step_scaled")
  public OptimizerReport stepScaled(LossScaler scaler, Array... gradients) {
    requireOpen("Optimizer.stepScaled");
    return (OptimizerReport) raw.step_scaled(given(scaler, "Optimizer.stepScaled").raw, gradients);
  }

  /**
   * The weights in 16 bits, f32 parameters being their masters: written now and by every step. In the order of the parameters, null where
   * there is none of one; nothing: no more copies. Kept until the next call, or until it is closed: direct arrays alone.
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
   * Its own memory, for a checkpoint; written to, it goes on from there. It stays as long as anything refers to these arrays or their
   * buffers: {@link #close} then gives it back when nothing does any more.
   */
  @OfC("st_optimizer_state_views")
  public Batch state() {
    synchronized (lease) {
      requireOpen("Optimizer.state");
      return lease.show(raw.state());
    }
  }

  /**
   * The norm of all gradients together; above {@code max} they are scaled down to it in place. max 0: they are only read. A norm that is
   * not finite is returned, and they stay as they are.
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
