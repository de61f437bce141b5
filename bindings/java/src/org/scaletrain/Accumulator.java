package org.scaletrain;

/**
 * Gradient accumulation by itself, over the program's own gradients, which it keeps until it is closed: direct arrays alone. A step is
 * backward and {@link #add}, again and again until {@link #shouldStep}.
 */
public final class Accumulator extends Handle {
  private final org.scaletrain.internal.Accumulator raw;

  /** steps: micro-batches of a step; gradients: the arrays that each backward writes. */
  @OfC("st_accumulator_create")
  public Accumulator(Context context, long steps, Array... gradients) {
    Array[] held = gradients.clone();
    for (Array gradient : held) given(gradient, "Accumulator").held("Accumulator", "the gradients");
    raw = new org.scaletrain.internal.Accumulator(given(context, "Accumulator").raw, steps, held);
    raw.keeps = new Object[] {context.raw, held};
  }

  /**
   * Adds the gradient of a micro-batch's summed loss; weight: its tokens, 0: it is empty. The last of a step leaves the gradient of the
   * mean over all tokens in the arrays.
   */
  @OfC("st_accumulator_add")
  public void add(double weight) {
    raw.add(weight);
  }

  /** Whether the arrays hold the gradient of the step: use it now. */
  @OfC("st_accumulator_should_step")
  public boolean shouldStep() {
    return raw.should_step();
  }

  /** Tokens of the step so far. */
  @OfC("st_accumulator_weight")
  public double weight() {
    return raw.weight();
  }

  /** Forgets the micro-batches of this step. */
  @OfC("st_accumulator_reset")
  public void reset() {
    raw.reset();
  }

  /** Between two steps only. */
  @OfC("st_accumulator_set_steps")
  public void setSteps(long steps) {
    raw.set_steps(steps);
  }

  @Override
  @OfC("st_accumulator_destroy")
  public void close() {
    raw.close();
    raw.keeps = null;
  }
}
