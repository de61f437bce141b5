package org.scaletrain;

/** Rows of this rank, and how many there are on all ranks together; 0: the epoch has ended. */
public record SampledRows(long[] rows, long all) {}
