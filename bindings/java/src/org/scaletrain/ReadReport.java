package org.scaletrain;

import java.util.List;

/**
 * What was found by name when weights were read.
 *
 * @param read how many parameters
 * @param missing in the model, not in what was read
 * @param unexpected the other way round
 */
public record ReadReport(long read, List<String> missing, List<String> unexpected) {}
