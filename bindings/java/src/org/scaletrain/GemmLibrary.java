package org.scaletrain;

/** What multiplies; AUTOMATIC: libraries of others are measured too, and the bits are the winner's. */
public enum GemmLibrary {
  OWN,
  AUTOMATIC
}
