package org.scaletrain;

/** One rank's shard of an array: {@code count} elements from index {@code begin} on. */
public record Share(long begin, long count) {}
