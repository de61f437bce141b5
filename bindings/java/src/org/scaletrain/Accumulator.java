package org.scaletrain;

/**
 * Gradient accumulation as a separate part, over the program's own gradient arrays. The arrays must be direct; the accumulator keeps them
 * until it is closed. In a step, call backward and then {@link #add} for each micro-batch until {@link #shouldStep} returns true.
 */
public final class Accumulator extends Handle {
  private final org.scaletrain.internal.Accumulator raw;
  private final Lease lease;
  private volatile boolean closed;

  /** {@code steps} is the number of micro-batches in a step; {@code gradients} are the arrays that each backward writes. */
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
   * Adds the gradient of a micro-batch's summed loss. {@code weight} is the micro-batch's token count; 0 means that it is empty. The last
   * micro-batch of a step writes the gradient of the mean over all tokens into the arrays.
   */
  @OfC("st_accumulator_add")
  public void add(double weight) {
    requireOpen("Accumulator.add");
    raw.add(weight);
  }

  /** Whether the arrays hold the gradient of the whole step. If so, use it before the next {@link #add}. */
  @OfC("st_accumulator_should_step")
  public boolean shouldStep() {
    requireOpen("Accumulator.shouldStep");
    return raw.should_step();
  }

  /** Sum of the weights that the step has had so far. */
  @OfC("st_accumulator_weight")
  public double weight() {
    requireOpen("Accumulator.weight");
    return raw.weight();
  }

  /** Discards the micro-batches that this step has had so far. */
  @OfC("st_accumulator_reset")
  public void reset() {
    requireOpen("Accumulator.reset");
    raw.reset();
  }

  /** Changes the number of micro-batches in a step. Allowed only between two steps. */
  @OfC("st_accumulator_set_steps")
  public void setSteps(long steps) {
    requireOpen("Accumulator.setSteps");
    raw.set_steps(steps);
  }

  /**
   * The accumulator's own memory, for a checkpoint in the middle of a step. To restore a checkpoint, write into these arrays. The memory
   * stays valid while anything refers to the arrays or their buffers, even after {@link #close}.
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
