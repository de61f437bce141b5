package org.scaletrain;

/** The function applied to each element of a product. */
public enum Activation {
  /** The identity. */
  NONE,
  /** max(x, 0). */
  RELU,
  /** x Phi(x) in GPT-2's tanh approximation. */
  GELU_TANH,
  /** x Phi(x), exact. */
  GELU_ERF,
  /** x times its logistic function. */
  SILU
}
