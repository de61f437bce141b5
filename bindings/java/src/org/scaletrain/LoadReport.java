package org.scaletrain;

import java.util.List;
import java.util.Map;

/**
 * The result of loading a checkpoint.
 *
 * @param step the step of the checkpoint
 * @param name the name of the checkpoint, for example "step-00000120"
 * @param metadata the metadata it was saved with, as strings
 * @param read number of tensors read
 * @param missing tensors that were requested but are not in the checkpoint
 * @param unexpected tensors that are in the checkpoint but were not requested
 * @param skipped newer checkpoints that were skipped because they are not valid, with the reason
 * @param changed for a trainer: recipe keys that differ from the checkpoint's, with both values, and an optimizer that starts afresh
 */
public record LoadReport(long step, String name, Map<String, String> metadata, long read, List<String> missing, List<String> unexpected,
    List<String> skipped, List<String> changed) {}
