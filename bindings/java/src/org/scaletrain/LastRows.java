package org.scaletrain;

/** How a {@link DistributedSampler} treats an epoch's last rows when fewer remain than all ranks together would take. */
public enum LastRows {
  /** Shares them evenly, so that each row is read once; some ranks get fewer rows or none. */
  SHARE,
  /** Skips them on all ranks. */
  DROP,
  /** Continues with the first rows of the next epoch, as a trainer's data does; epochs have no end. */
  JOIN;

  /** The number in the C ABI. */
  int number() {
    return ordinal() + 1;
  }
}
