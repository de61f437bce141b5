package org.scaletrain;

import java.util.List;

/**
 * A custom op without a gradient; {@link DifferentiableOp} has one. It may be called from any thread. Its arrays are valid only during the
 * call. An exception that it throws is rethrown by the call that ran it.
 */
public interface HostOp {
  /** Number of outputs. */
  default int outputs() {
    return 1;
  }

  /**
   * The types of the outputs, computed from those of the inputs. Must be a pure function. A negative first dimension {@code -n} means n times
   * the batch size.
   */
  List<ArrayType> shape(List<ArrayType> inputs);

  /** Computes the outputs. */
  void forward(List<BorrowedArray> inputs, List<BorrowedArray> outputs);
}
