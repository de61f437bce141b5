package org.scaletrain;

/** What of an array's elements is one rank's: {@code count} of them, from {@code begin} on. */
public record Share(long begin, long count) {}
