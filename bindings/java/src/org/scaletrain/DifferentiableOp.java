package org.scaletrain;

import java.util.List;

/** A custom op with a gradient. */
public interface DifferentiableOp extends HostOp {
  /** Computes those {@code inputGradients} that are not null from {@code outputGradients}, the loss's gradients by the outputs. */
  void backward(List<BorrowedArray> inputs, List<BorrowedArray> outputs, List<BorrowedArray> outputGradients, List<BorrowedArray> inputGradients);
}
