package org.scaletrain;

/**
 * Bytes of buffers for one purpose.
 *
 * @param role {@code parameters}, {@code gradients}, ...
 * @param bytes now
 * @param peakBytes the most that there have been
 */
public record MemoryUse(String role, long bytes, long peakBytes) {}
