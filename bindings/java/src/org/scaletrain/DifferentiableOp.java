package org.scaletrain;

import java.util.List;

/** A custom op with a gradient. */
public interface DifferentiableOp extends HostOp {
  /** Computes those {@code inputGradients} that are not null from {@code outputGradients}, the loss's gradients by the outputs. */
  void backward(List<Lent> inputs, List<Lent> outputs, List<Lent> outputGradients, List<Lent> inputGradients);
}
