package org.scaletrain;

/** What is done to each element behind a product. */
public enum Activation {
  /** As it is. */
  NONE,
  /** max(x, 0). */
  RELU,
  /** x Phi(x), by GPT-2's approximation. */
  GELU_TANH,
  /** x Phi(x). */
  GELU_ERF,
  /** x times its logistic function. */
  SILU
}
