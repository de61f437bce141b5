package org.scaletrain;

import java.util.List;

/**
 * Bytes of a context's buffers.
 *
 * @param allocatedBytes now
 * @param availableBytes on this machine, lowered by a cgroup's limit and the context's
 * @param residentBytes of this process
 * @param peakBytes the most that allocatedBytes has been
 * @param limitBytes the context's; 0: none
 * @param roles what they are for; their bytes together are allocatedBytes
 */
public record MemoryStats(long allocatedBytes, long availableBytes, long residentBytes, long peakBytes, long limitBytes,
    List<MemoryUse> roles) {}
