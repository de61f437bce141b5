package org.scaletrain;

import java.util.List;

/**
 * Memory of a context's buffers.
 *
 * @param allocatedBytes bytes in use now
 * @param availableBytes bytes available on this machine, reduced to the limits of the cgroup and of the context
 * @param residentBytes resident memory of this process
 * @param peakBytes maximum of allocatedBytes
 * @param limitBytes the context's limit; 0 for none
 * @param roles the use by purpose; their bytes add up to allocatedBytes
 */
public record MemoryStats(long allocatedBytes, long availableBytes, long residentBytes, long peakBytes, long limitBytes,
    List<MemoryUse> roles) {}
