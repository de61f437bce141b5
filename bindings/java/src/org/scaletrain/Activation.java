package org.scaletrain;

/** What is done to each element behind a product. */
public enum Activation {
  NONE,
  RELU,
  GELU_TANH,
  GELU_ERF,
  SILU
}
