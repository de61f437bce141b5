package org.scaletrain;

import java.util.List;

/**
 * A pipeline of the program's own stages. The program computes; the library runs a schedule and sends activations and gradients between the
 * ranks. The model is cut into parts, one after the other; rank s is stage s. Schedules:
 * <ul>
 * <li>"gpipe", "1f1b", "zb-h1": stage s has part s
 * <li>"interleaved": v parts a stage, 2 or more; chunk c of stage s is part c * stages + s
 * <li>"zb-v": 2 parts a stage; chunk 0 of stage s is part s, chunk 1 part 2 * stages - 1 - s
 * <li>or a table, a line for each stage with cells such as 0F0,0F1,0B0,0B1: part, F (forward), B (backward), or I (gradient of the input)
 * and later W (of the weights), and micro-batch
 * </ul>
 * Sums of gradients have the same bits in every schedule.
 */
public final class Pipeline extends Handle {
  private final org.scaletrain.internal.Pipeline raw;

  /**
   * All ranks must create it together. {@code inputs} and {@code outputs} have the types of this rank's chunks, without batch dims; those of
   * the model's first input and last output are not read and may be null. {@code stage} is kept until the pipeline is closed.
   */
  @OfC("st_pipeline_create")
  public Pipeline(Communicator communicator, String schedule, List<ArrayType> inputs, List<ArrayType> outputs, Stage stage) {
    raw = new org.scaletrain.internal.Pipeline(given(communicator, "Pipeline").raw, schedule,
        Callbacks.numbers(given(inputs, "Pipeline: inputs")), Callbacks.numbers(given(outputs, "Pipeline: outputs")),
        given(stage, "Pipeline: stage"));
    raw.keeps = new Object[] {communicator.raw, stage};
  }

  /**
   * Calls the stage for so many micro-batches, 1 to 1048576, the same number on all ranks. Returns when all
   * ranks' work is done. If a stage fails or is gone, the other ranks throw {@link RankFailed}, and the communicator's group is over.
   */
  @OfC("st_pipeline_run")
  public void run(int microBatches) {
    raw.run(microBatches);
  }

  /**
   * Describes a run of so many micro-batches as JSON: stages, chunks, micro_batches, in_flight (by stage, chunks between their forward and
   * the end of their backward, at most), buffer_bytes, send_bytes, bubble (the share of the time in which a stage waits) and table.
   */
  @OfC("st_pipeline_schedule")
  public String schedule(int microBatches) {
    return raw.schedule(microBatches);
  }

  @Override
  @OfC("st_pipeline_destroy")
  public void close() {
    raw.close();
  }
}
