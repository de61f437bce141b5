package org.scaletrain;

/** The rows of this rank, and the number of rows on all ranks together; {@code all} is 0 when the epoch has ended. */
public record SampledRows(long[] rows, long all) {}
