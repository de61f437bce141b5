package org.scaletrain;

/** The initial values of a parameter. {@code scale} is the standard deviation, the half width or the gain. */
public enum Init {
  /** All 0. */
  ZEROS,
  /** All 1. */
  ONES,
  /** Normal with standard deviation {@code scale}. */
  NORMAL,
  /** Uniform between -{@code scale} and {@code scale}. */
  UNIFORM,
  /** Uniform with gain {@code scale} (Glorot and Bengio 2010). */
  XAVIER,
  /** Normal with gain {@code scale} over the number of inputs (He et al. 2015). */
  KAIMING
}
