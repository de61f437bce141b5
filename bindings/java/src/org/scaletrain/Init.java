package org.scaletrain;

/** What a parameter begins with; {@code scale} is the standard deviation, the half width or the gain. */
public enum Init {
  /** All 0. */
  ZEROS,
  /** All 1. */
  ONES,
  /** Normal, of standard deviation {@code scale}. */
  NORMAL,
  /** Uniform between -{@code scale} and {@code scale}. */
  UNIFORM,
  /** Uniform, of the gain {@code scale} (Glorot and Bengio 2010). */
  XAVIER,
  /** Normal over the inputs, of the gain {@code scale} (He et al. 2015). */
  KAIMING
}
