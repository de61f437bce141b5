package org.scaletrain;

/** What is done behind alpha A B + beta C, in the order of these methods. */
public final class Epilogue {
  Array bias;
  Array preActivation;
  Activation activation = Activation.NONE;
  Array derivativeAt;
  Array residual;
  Array columnSums;

  /** Nothing. */
  public Epilogue() {}

  /** Adds these, [n], to each row. */
  public Epilogue bias(Array bias) {
    this.bias = bias;
    return this;
  }

  /** Fills this array with what the activation gets. */
  public Epilogue preActivation(Array to) {
    preActivation = to;
    return this;
  }

  /** Of each element. */
  public Epilogue activation(Activation activation) {
    this.activation = Handle.given(activation, "Epilogue.activation");
    return this;
  }

  /** In place of the activation: times its derivative at these. */
  public Epilogue derivativeAt(Array at) {
    derivativeAt = at;
    return this;
  }

  /** Adds these. */
  public Epilogue residual(Array residual) {
    this.residual = residual;
    return this;
  }

  /** Fills this array, [n], with the sums of the columns. */
  public Epilogue columnSums(Array to) {
    columnSums = to;
    return this;
  }
}
