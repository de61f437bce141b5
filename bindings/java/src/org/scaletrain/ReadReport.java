package org.scaletrain;

import java.util.List;

/**
 * The result of reading weights by name.
 *
 * @param read number of parameters read
 * @param missing parameters of the model that the source does not have
 * @param unexpected tensors of the source that the model does not have
 */
public record ReadReport(long read, List<String> missing, List<String> unexpected) {}
