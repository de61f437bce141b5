/* A pipeline of a host's own stages: the host computes, the library runs a schedule and sends activations and gradients between the ranks.
 *
 * The model is cut into parts, one after the other. A rank (a stage of the pipeline) has one or more of them, its chunks:
 * - schedules "gpipe", "1f1b" and "zb-h1": one; stage s has part s
 * - "interleaved": v, 2 or more; chunk c of stage s is part c * stages + s
 * - "zb-v": 2; chunk 0 of stage s is part s, chunk 1 part 2 * stages - 1 - s, so that stage 0 has both ends of the model
 * - or a table in PyTorch's notation: a line for each stage, with cells such as 0F0,0F1,0B0,0B1: the part, F (forward), B (backward), or in
 *   its place I (gradient of the input) and later W (of the weights), and the micro-batch
 *
 * Every schedule is proved to end and to compute everything once before anything runs, for any number of micro-batches. Backward comes in
 * order of the micro-batches, so sums of gradients have the same bits in every schedule, and those of one rank.
 *
 *   each rank: st_pipeline_create(...)              once
 *   each step: st_pipeline_run(pipeline, m)         calls the functions below for m micro-batches
 *              then the host's own update, or st_optimizer */
#ifndef SCALETRAIN_PIPELINE_H
#define SCALETRAIN_PIPELINE_H

#include <scaletrain/communicator.h>
#include <scaletrain/host_op.h>

ST_BEGIN

typedef struct st_pipeline st_pipeline;

/* One call of the host. Frozen, like st_view. The views are row-major buffers of the pipeline, aligned to 64 bytes. What is in them stays
 * from the forward of a micro-batch to its backward_weight. data is NULL where there is nothing: the first part has no input, the last one
 * no output, and forward no gradients. */
typedef struct st_stage_work {
  int32_t part;            /* of the model, from 0 */
  int32_t chunk;           /* of this rank, from 0 */
  int32_t micro_batch;     /* of this run, from 0 */
  int32_t reserved;        /* 0 */
  st_view input;           /* forward reads it; so may the others */
  st_view output;          /* forward fills it completely */
  st_view output_gradient; /* backward_input reads it; so may backward_weight */
  st_view input_gradient;  /* backward_input fills it completely */
} st_stage_work;

/* Computes a part on a micro-batch. Any status but ST_OK ends the run. */
typedef st_status (*st_stage_fn)(void* user, const st_stage_work* work);

typedef struct st_pipeline_callbacks {
  uint32_t struct_size;
  st_stage_fn forward;         /* the last part also computes its loss, which is the host's */
  st_stage_fn backward_input;  /* the gradient of the part's input from that of its output; the last part begins with its loss */
  st_stage_fn backward_weight; /* adds to the gradients of the part's weights; NULL: backward_input does that. Only where the two are
                                * separate do zb-h1 and zb-v have a smaller bubble */
} st_pipeline_callbacks;
ST_API st_status st_pipeline_callbacks_init(st_pipeline_callbacks* callbacks, size_t size);

/* All ranks of `communicator` call it; rank s is stage s. n: chunks of this rank, the same on all.
 * - inputs, outputs: n types each, without batch dims; the first part's input and the last part's output are not read. 1 to 8 dims; any
 *   dtype that a communicator sends.
 * - user must live as long as the pipeline. Callbacks run on the thread that calls st_pipeline_run, with no lock of the library held; calls
 *   on the pipeline and its communicator are ST_BUSY in them.
 * - Makes groups of the communicator's ranks, as st_communicator_split does, and threads that send and receive, two for each neighbour of a
 *   chunk; in a run one more watches the deadline.
 * - ST_INVALID_ARGUMENT: the schedule does not exist, is wrong (the message has the cell, or the stages that wait for each other), or has
 *   another number of chunks. ST_RANK_MISMATCH, on all ranks: they have different schedules, or a part's output is not the next one's
 *   input; the message has both sides. */
ST_API st_status st_pipeline_create(st_communicator* communicator, const char* schedule, int32_t n, const st_op_type* inputs,
                                    const st_op_type* outputs, const st_pipeline_callbacks* callbacks, void* user, st_pipeline** pipeline);
ST_API st_status st_pipeline_destroy(st_pipeline* pipeline);

/* All ranks call it with the same number of micro-batches, 1 to 2^20; a table runs the number that it is written for. Returns when all
 * ranks' work is done. After an error the communicator's group is over on all ranks; the host's arrays are as its functions left them.
 * - ST_CALLBACK: a callback failed here.
 * - ST_RANK_FAILED: a stage failed, with its message, has ended, or one call of its functions took longer than the communicator's deadline.
 *   Waits of the others for a stage have no limit while it lives and computes, so the deadline need not cover the whole pipeline.
 * - ST_TIMEOUT: a stage's process gives no sign of life until the deadline. */
ST_API st_status st_pipeline_run(st_pipeline* pipeline, int32_t micro_batches);

/* Describes a run of so many micro-batches, without running it:
 * {"stages":2,"chunks":1,"micro_batches":4,"in_flight":[2,1],"buffer_bytes":2048,"send_bytes":4096,"bubble":0.2,
 *  "table":"0F0,0F1,0B0,...\n1F0,1B0,...\n"}
 * in_flight: by stage, chunks of the model between their forward and the end of their backward, at most. buffer_bytes: of this rank's
 * views. send_bytes: that this rank sends in the run. bubble: the share of the time in which a stage waits, if a part's forward,
 * backward_input and backward_weight take equally long and nothing else takes time. Owned by the pipeline until its next call. */
ST_API st_status st_pipeline_schedule(st_pipeline* pipeline, int32_t micro_batches, const char** json);

ST_END
#endif
