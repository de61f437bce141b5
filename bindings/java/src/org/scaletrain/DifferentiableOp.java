package org.scaletrain;

import java.util.List;

/** An op of the program's own with a gradient. */
public interface DifferentiableOp extends HostOp {
  /** Fills those of {@code inputGradients} that are not null, from the gradients of the loss by the outputs. */
  void backward(List<Lent> inputs, List<Lent> outputs, List<Lent> outputGradients, List<Lent> inputGradients);
}
