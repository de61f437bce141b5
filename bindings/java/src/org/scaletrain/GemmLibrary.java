package org.scaletrain;

/** The library that computes a product. */
public enum GemmLibrary {
  /** ScaleTrain's own kernels. */
  OWN,
  /** Third-party libraries are measured too; the fastest computes the product and determines its bits. */
  AUTOMATIC
}
