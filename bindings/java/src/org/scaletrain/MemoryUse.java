package org.scaletrain;

/**
 * Memory of the buffers for one purpose.
 *
 * @param role {@code parameters}, {@code gradients}, ...
 * @param bytes bytes in use now
 * @param peakBytes maximum of bytes
 */
public record MemoryUse(String role, long bytes, long peakBytes) {}
