package org.scaletrain;

import java.util.List;

/**
 * An op of the program's own, without a gradient; {@link DifferentiableOp} has one. Called from any thread; the arrays end with the call.
 * What it throws arrives at the call that ran it.
 */
public interface HostOp {
  /** How many outputs it has. */
  default int outputs() {
    return 1;
  }

  /** Types of the outputs from those of the inputs: a pure function. A first dimension below 0 is that many times the batch. */
  List<ArrayType> shape(List<ArrayType> inputs);

  /** Fills the outputs. */
  void forward(List<Lent> inputs, List<Lent> outputs);
}
