package org.scaletrain;

/**
 * Gradient accumulation by itself, over the program's own gradients, which it keeps until it is closed: direct arrays alone. A step is
 * backward and {@link #add}, again and again until {@link #shouldStep}.
 */
public final class Accumulator extends Handle {
  private final org.scaletrain.internal.Accumulator raw;
  private final Lease lease;
  private volatile boolean closed;

  /** steps: micro-batches of a step; gradients: the arrays that each backward writes. */
  @OfC("st_accumulator_create")
  public Accumulator(Context context, long steps, Array... gradients) {
    Array[] held = gradients.clone();
    for (Array gradient : held) given(gradient, "Accumulator").held("Accumulator", "the gradients");
    raw = new org.scaletrain.internal.Accumulator(given(context, "Accumulator").raw, steps, held);
    raw.keeps = new Object[] {context.raw, held};
    var ending = raw;
    lease = new Lease(() -> {
      ending.close();
      ending.keeps = null;
    });
  }

  /**
   * Adds the gradient of a micro-batch's summed loss; weight: its tokens, 0: it is empty. The last of a step leaves the gradient of the
   * mean over all tokens in the arrays.
   */
  @OfC("st_accumulator_add")
  public void add(double weight) {
    requireOpen("Accumulator.add");
    raw.add(weight);
  }

  /** Whether the arrays hold the gradient of the step: use it now. */
  @OfC("st_accumulator_should_step")
  public boolean shouldStep() {
    requireOpen("Accumulator.shouldStep");
    return raw.should_step();
  }

  /** Tokens of the step so far. */
  @OfC("st_accumulator_weight")
  public double weight() {
    requireOpen("Accumulator.weight");
    return raw.weight();
  }

  /** Forgets the micro-batches of this step. */
  @OfC("st_accumulator_reset")
  public void reset() {
    requireOpen("Accumulator.reset");
    raw.reset();
  }

  /** Between two steps only. */
  @OfC("st_accumulator_set_steps")
  public void setSteps(long steps) {
    requireOpen("Accumulator.setSteps");
    raw.set_steps(steps);
  }

  /**
   * Its own memory, for a checkpoint in the middle of a step; written to, it goes on from there. It stays as long as anything refers to
   * these arrays or their buffers: {@link #close} then gives it back when nothing does any more.
   */
  @OfC("st_accumulator_state_views")
  public Batch state() {
    synchronized (lease) {
      requireOpen("Accumulator.state");
      return lease.show(raw.state());
    }
  }

  @Override
  @OfC("st_accumulator_destroy")
  public void close() {
    synchronized (lease) {
      if (closed) return;
      lease.close();
      closed = true;
    }
  }

  private void requireOpen(String call) {
    if (closed) throw new InvalidHandle(call + ": the accumulator is closed");
  }
}
