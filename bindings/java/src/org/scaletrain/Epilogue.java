package org.scaletrain;

/** Operations applied to alpha A B + beta C, in the order of these methods. */
public final class Epilogue {
  Array bias;
  Array preActivation;
  Activation activation = Activation.NONE;
  Array derivativeAt;
  Array residual;
  Array columnSums;

  /** No operations. */
  public Epilogue() {}

  /** Adds this bias [n] to each row. */
  public Epilogue bias(Array bias) {
    this.bias = bias;
    return this;
  }

  /** Writes the input of the activation to this array. */
  public Epilogue preActivation(Array to) {
    preActivation = to;
    return this;
  }

  /** Applies this function to each element. */
  public Epilogue activation(Activation activation) {
    this.activation = Handle.given(activation, "Epilogue.activation");
    return this;
  }

  /** Multiplies by the derivative of the activation at these values, instead of applying the activation. */
  public Epilogue derivativeAt(Array at) {
    derivativeAt = at;
    return this;
  }

  /** Adds this array. */
  public Epilogue residual(Array residual) {
    this.residual = residual;
    return this;
  }

  /** Writes the sums of the columns to this array [n]. */
  public Epilogue columnSums(Array to) {
    columnSums = to;
    return this;
  }
}
