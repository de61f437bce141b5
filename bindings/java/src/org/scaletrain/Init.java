package org.scaletrain;

/** What a parameter begins with; {@code scale} is the standard deviation, the half width or the gain. */
public enum Init {
  ZEROS,
  ONES,
  NORMAL,
  UNIFORM,
  XAVIER,
  KAIMING
}
