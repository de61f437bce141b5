package org.scaletrain;

/** What multiplies. */
public enum GemmLibrary {
  /** The library's own kernels. */
  OWN,
  /** Libraries of others are measured too, and the bits are the winner's. */
  AUTOMATIC
}
