package org.scaletrain;

/**
 * The computation of a rank in a {@link Pipeline}: of one part of the model, or of several, its chunks. Called on the thread that is in
 * {@link Pipeline#run}, where calls on the pipeline and its communicator throw {@link Busy}. An exception ends the run on all ranks and is
 * rethrown by {@link Pipeline#run} here.
 */
public interface Stage {
  /** Computes the output from the input. The last part also computes its loss, which is the program's. */
  void forward(StageWork work);

  /** Computes the input gradient from the output gradient. The last part begins with its loss. */
  void backwardInput(StageWork work);

  /**
   * Adds to the gradients of the part's weights. An implementation without it does this in {@link #backwardInput}. Only where the two are
   * separate do "zb-h1" and "zb-v" have a smaller bubble.
   */
  default void backwardWeight(StageWork work) {}
}
