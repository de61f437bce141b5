package org.scaletrain;

import java.util.List;
import java.util.Map;

/**
 * What was loaded from a checkpoint.
 *
 * @param step of the checkpoint
 * @param name of it: "step-00000120"
 * @param metadata that it was saved with, all as texts
 * @param read how many tensors
 * @param missing asked for, not in the checkpoint
 * @param unexpected the other way round
 * @param skipped newer checkpoints that were passed over since they are not whole, and why
 * @param changed of a trainer: keys of its recipe that differ from the checkpoint's, with both values; an optimizer that begins anew
 */
public record LoadReport(long step, String name, Map<String, String> metadata, long read, List<String> missing, List<String> unexpected,
    List<String> skipped, List<String> changed) {}
