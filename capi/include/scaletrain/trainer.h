/* A trainer: makes one optimizer step at a time, planned completely in advance. */
#ifndef SCALETRAIN_TRAINER_H
#define SCALETRAIN_TRAINER_H

#include <scaletrain/communicator.h>
#include <scaletrain/data.h>
#include <scaletrain/model.h>
#include <scaletrain/recipe.h>

ST_BEGIN

typedef struct st_trainer st_trainer;

typedef struct st_step_report {
  uint32_t struct_size;
  int32_t skipped; /* 1: nothing was updated: the gradient was not finite, or too large to be clipped (st_optimizer_report) */
  int64_t step;    /* attempts from 1, skipped ones too */
  double loss;     /* mean over the counted rows of the step, before its update */
  double lr;
  double grad_norm;  /* before clipping */
  double loss_scale; /* by which this step's loss was multiplied; 1 unless the recipe's precision is fp16 */
  int64_t tokens;    /* since step 1 */
  double tokens_per_second;
  double milliseconds;
  int64_t memory_bytes;        /* of all buffers: the plan's device_total, the data's prefetch buffers, and plans made by evaluate */
  double gradient_noise_scale; /* in rows of a batch, if the recipe's key of that name is set; NaN: not measured, or not known yet */
  const char* save_error;      /* why a save of st_trainer_save_every failed, reported once; NULL: none did. (O) */
  int64_t saved_step;          /* step of the newest checkpoint on disk from such saves; -1: none yet */
} st_step_report;

ST_API st_status st_step_report_init(st_step_report* report, size_t size);

/* Plans the step and allocates all its memory; a step allocates nothing. Copies the recipe. data NULL: each step is given its batch.
 * ST_OUT_OF_MEMORY has the bytes needed and available; nothing was changed. */
ST_API st_status st_trainer_create(st_model* model, st_recipe* recipe, st_data* data, st_trainer** trainer);
/* Makes the trainer of one rank of the communicator, which it keeps alive. Every rank calls this with the same model, recipe and data, and
 * then makes the same steps. Losses and states are those of ranks as threads.
 * - A batch that is given holds this rank's rows: those of micro-batches g * size + rank; with stages or tensor, size and rank along the
 *   data ranks.
 * - A difference between ranks is ST_RANK_MISMATCH on all of them; the message says what differs. Any other error of a step on one rank
 *   ends the group: the others get ST_RANK_FAILED with its reason.
 *
 * Who makes which call, whatever the recipe:
 *   create_in_group, step, run, advance, forward, forward_into,            all ranks, in the same order
 *   backward, apply, resume, use_average, set, set_schedule,
 *   st_model_set, _read, _load
 *   calls with the suffix _collective, those on a predictor made by one    all ranks, in the same order, between the same steps
 *   all others                                                             any rank alone
 * When the local call of a pair is ST_WRONG_STATE, because other ranks have parts of what it reads:
 *   st_model_get                                         zero 3*, stages, tensor, unless this rank has the whole parameter
 *   st_model_digest, _clone, _write, _write_file,        zero 3*, stages, tensor
 *   st_predictor_create, st_trainer_evaluate
 *   st_trainer_gradient, _evaluate_average, _save,       zero 1, 2 and 3, stages, tensor
 *   _save_every
 *   st_trainer_average                                   zero 1, 2 and 3, stages, tensor, unless this rank has the whole average
 *   st_trainer_digest, _log_end, _write_report           the same, unless all ranks have made st_trainer_digest_collective since the state
 *                                                        changed; log_end and write_report have no collective form
 *   * also zero 1 and 2 in 16 bits in a context with late_parameters
 * capi/trainer_in_group.md has what is compared, what each rank holds at each stage, and what an error ends. */
ST_API st_status st_trainer_create_in_group(st_model* model, st_recipe* recipe, st_data* data, st_communicator* communicator,
                                            st_trainer** trainer);
ST_API st_status st_trainer_destroy(st_trainer* trainer);

/* One optimizer step. report may be NULL.
 * - batch: n named views (B) with micro_batches x batch rows each, of any strides (copied unless row-major). n 0 and NULL: the data's next
 *   rows.
 * - With fewer rows, the last micro-batch that has any is short and later ones add nothing: the loss is the mean over the rows given.
 * - A call that fails or is cancelled leaves the state of the last whole step; the next one gets the same rows and random numbers.
 * - NaN in a batch is ST_NOT_FINITE.
 * - If only the step's log line could not be written, the step is done and the report filled; the log is closed, and the status says
 *   why. */
ST_API st_status st_trainer_step(st_trainer* trainer, int64_t n, const st_named_view* batch, st_step_report* report);

/* Makes steps until the trainer has made `steps` in all, or until it is stopped. on_step may be NULL.
 * - It is called between steps, on the calling thread. Any status but ST_OK from it ends the run with ST_CALLBACK.
 * - It may make every call on this trainer except run and destroy, which are ST_BUSY. It must finish a step that it begins by advance or
 *   forward, or the run's next step is ST_WRONG_STATE.
 * - Steps that it makes count, without a call of on_step. After it resumes, the run continues from the resumed step.
 * - For other threads the trainer is ST_BUSY until the run ends. */
typedef st_status (*st_on_step_fn)(void* user, const st_step_report* report);
ST_API st_status st_trainer_run(st_trainer* trainer, int64_t steps, st_on_step_fn on_step, void* user);

/* The same step in slices, with the bits of st_trainer_step. Works for about `nanoseconds`, and sets `done` to 1 when the step is finished,
 * else to 0. Until then call it again, with the same batch (borrowed until then), or n 0 for the data's rows. report may be NULL; it is
 * filled when done.
 * - It overruns by at most one instruction, also when a callback is late with rows.
 * - Until done, the trainer's step, run, evaluate, digest, gradient, forward, backward, apply, log_end, write_report and the calls on the
 *   average are ST_WRONG_STATE. Once the update has begun, calls that read or write weights are ST_BUSY.
 * - A cancel undoes the step unless its update has begun.
 * - With 2 or more ranks, one call makes the whole step. */
ST_API st_status st_trainer_advance(st_trainer* trainer, int64_t n, const st_named_view* batch, int64_t nanoseconds, int32_t* done,
                                    st_step_report* report);

/* A step whose loss the host computes: for each micro-batch forward or forward_into, the host's loss and backward, then apply.
 * - forward runs one micro-batch, of the recipe's `batch` rows, with dropout on, and gives the graph's outputs (O). The batch is borrowed
 *   until the following backward has returned, which reads it too. Inputs that only the graph's own loss reads may be left out.
 * - forward_into is the same forward, but copies outputs to m arrays of the host, which may be in the context's device's memory (view.h).
 *   Each view has an output's name, dtype and shape, and memory of its own, apart from the batch's. Outputs left out are not copied; m 0:
 *   none is. A rank that gets no outputs from forward gives m 0.
 * - backward takes the loss's gradients by output name; outputs left out count as 0, and "metric.*" outputs take none. NULL: the graph's
 *   own loss. Gradients of several micro-batches add up as given, without division. With precision fp16 the trainer scales and unscales
 *   them itself and skips a step that overflows (also with find_nan, which covers step, run and advance).
 * - apply clips, updates by the sum and ends the step. Its report's loss is NaN unless the graph's own loss was used.
 * - A cancel or any error of these, a refused argument included, undoes the micro-batches since the last whole step; begin it again
 *   with forward.
 * - Until apply, the trainer's step, run, advance, digest, gradient, use_average, log_end and write_report are ST_WRONG_STATE; evaluate
 *   does not change the step.
 * - A graph without a loss trains only by these.
 * - With ranks as threads (the recipe's `ranks`) they are ST_UNSUPPORTED, since each rank would have its own outputs. For ranks of a group
 *   see capi/trainer_in_group.md. A loss that works on ranks of all kinds is an op of the host (host_op.h). */
ST_API st_status st_trainer_forward(st_trainer* trainer, int64_t n, const st_named_view* batch, int64_t* m, const st_named_view** outputs);
ST_API st_status st_trainer_forward_into(st_trainer* trainer, int64_t n, const st_named_view* batch, int64_t m,
                                         const st_named_view* outputs);
ST_API st_status st_trainer_backward(st_trainer* trainer, int64_t m, const st_named_view* output_gradients);
ST_API st_status st_trainer_apply(st_trainer* trainer, st_step_report* report);

/* Copies a parameter's gradient of the last step: of the mean loss (after apply: the sum of what the host gave), before clipping, f32, of
 * the parameter's shape. ST_WRONG_STATE before the first step, during a step, and after one that did not finish. */
ST_API st_status st_trainer_gradient(st_trainer* trainer, const char* name, const st_view* to);
ST_API st_status st_trainer_gradient_collective(st_trainer* trainer, const char* name, const st_view* to);
/* Changes a key of the recipe from the next step on: lr, warmup, lr_schedule and the schedule's other keys (schedule.h).
 * ST_INVALID_ARGUMENT: the keys would contradict each other, as a schedule without its length; nothing has changed. ST_UNSUPPORTED: the
 * plan depends on the key. */
ST_API st_status st_trainer_set(st_trainer* trainer, const char* key, const char* json_value);
/* The learning rate as a function of the host, which replaces the recipe's schedule and warm-up from the next step on. Writes the rate
 * after k successful steps; a skipped step asks for the same k again. Called once at the start of each step, on the calling thread, never
 * twice at once. A status other than ST_OK, or a rate that is negative or not finite, ends the step with ST_CALLBACK and the state of the
 * last whole step. Calls on this trainer from it are ST_BUSY. */
typedef st_status (*st_learning_rate_fn)(void* user, int64_t k, double* lr);
/* rate and user (H) until release(user), which is called once, by the thread that replaces them or destroys the trainer; it may be NULL,
 * and is not called if this call fails. rate NULL: back to the recipe's schedule; release is ignored. */
ST_API st_status st_trainer_set_schedule(st_trainer* trainer, st_learning_rate_fn rate, st_release_fn release, void* user);
/* A key of the recipe, as it is now. (O) */
ST_API st_status st_trainer_get(st_trainer* trainer, const char* key, const char** json_value);

/* Ends a run after the running step; from any thread. If none is running, the next run ends before its first step. */
ST_API st_status st_trainer_stop(st_trainer* trainer);
/* Ends the running step or evaluation with ST_CANCELLED at its next instruction, or within a few milliseconds while it waits for a
 * callback's rows; from any thread. If the step's update has begun, or nothing is running, the next call is cancelled instead. One cancel
 * ends one call. */
ST_API st_status st_trainer_cancel(st_trainer* trainer);

/* Frozen, like st_view, because arrays of it are given. */
typedef struct st_metric {
  const char* name;
  double mean;
} st_metric;
typedef struct st_evaluation {
  uint32_t struct_size;
  int32_t reserved;
  double loss;  /* mean over the counted rows, dropout off */
  double count; /* rows counted */
  int64_t metric_count;
  const st_metric* metrics; /* for each output named "metric.*": the mean over its elements and all rows; of losses, over what they count.
                             * (O) */
} st_evaluation;

ST_API st_status st_evaluation_init(st_evaluation* evaluation, size_t size);
/* Over all rows of the data. Collective: all ranks give the same rows, and an error of one rank ends the group, as an error of a step. */
ST_API st_status st_trainer_evaluate(st_trainer* trainer, st_data* data, st_evaluation* evaluation);
ST_API st_status st_trainer_evaluate_collective(st_trainer* trainer, st_data* data, st_evaluation* evaluation);

/* The exponential moving average of the weights, kept if the recipe has ema_decay; else these three are ST_WRONG_STATE. Before the first
 * successful step it equals the weights; for frozen parameters always.
 * - evaluate_average evaluates with the averages in place of the weights, which do not change.
 * - average copies the average of one parameter, as st_model_get.
 * - use_average makes the averages the model's weights, from which training continues; the averages do not change. */
ST_API st_status st_trainer_evaluate_average(st_trainer* trainer, st_data* data, st_evaluation* evaluation);
ST_API st_status st_trainer_evaluate_average_collective(st_trainer* trainer, st_data* data, st_evaluation* evaluation);
ST_API st_status st_trainer_average(st_trainer* trainer, const char* name, const st_view* to);
ST_API st_status st_trainer_average_collective(st_trainer* trainer, const char* name, const st_view* to);
ST_API st_status st_trainer_use_average(st_trainer* trainer);

/* 32 hex digits: XXH3-128 over every parameter and optimizer value in name order (name, dtype, shape, bytes). Equal digests mean equal
 * runs. This text and the next two: (O).
 *
 * With sharded state the local call, log_end and write_report use the last collective digest; ST_WRONG_STATE if the state has changed
 * since. In the collective one the ranks agree whether it has, and compute it again only then. */
ST_API st_status st_trainer_digest(st_trainer* trainer, const char** hex);
ST_API st_status st_trainer_digest_collective(st_trainer* trainer, const char** hex);
/* {"rows_per_step":..,"ranks":[{"memory":{"parameters":..,...},"wire_bytes":..,"collectives":..,...}]}, with the ranks of this process.
 * - "rows_per_step" is of all ranks together. "micro_batches" are rounds of the step.
 * - "device_total" does not include "file_total", the bytes in offload_folder, and "host_total", those that a device offloads to the
 *   host; that of st_plan also has the pinned memory of inputs.
 * - "wire_bytes" are those of the elements that the rank sends in a step of all rows, by op in "wire"; without what ranks compare before a
 *   step.
 * - "recompute" has bytes of stash before and after; extra_flops (of products and attention) and extra_bytes (read and written by other
 *   ops) for each micro-batch, in total and by scope. */
ST_API st_status st_trainer_plan(st_trainer* trainer, const char** json);
/* For people: passes with their times, the program, memory by role. */
ST_API st_status st_trainer_explain(st_trainer* trainer, const char** text);
/* Where the time of the last steps went, by rank; with one rank both lists are empty. (O)
 *   {"steps":[{"step":12,"straggler":1.04,"ranks":[{"milliseconds":..,"computing":..,"exchange":..,"hidden":..},..]},..],
 *    "ranks":[{"rank":0,"step":12,"milliseconds":..,"computing":..,"exchange":..,"hidden":..,"began_us":..,"ended_us":..,
 *              "computed_us":[[began,ended],..],"exchanges":[..]},..]}
 * With several pipeline stages each of "ranks" also has
 *             {"stage":0,"data_rank":0,"tensor_rank":0,"bubble":0.2,
 *              "actions":[{"phase":"forward","chunk":0,"micro_batch":0,"began_us":..,"ended_us":..,"waited_us":..,
 *                          "exchanged_us":..},..]}
 * - "steps": all ranks, at most the last 16 steps. Ranks of a communicator share these when the next st_trainer_step or st_trainer_advance
 *   begins, so a step is missing until then.
 * - "ranks": the ranks of this process, in their newest step: when each computed, by the monotonic clock, and its exchanges as in
 *   st_communicator_flight_record; at most the last 64 of each.
 * - "computing": milliseconds in which the rank neither waited for an exchange nor ran one itself. "hidden": the share of "exchange" that
 *   overlapped computing. "straggler": the slowest rank's computing divided by the mean of all ranks. With several stages, the time in
 *   which a rank waits for messages of other stages is exchange.
 * - "actions": what the rank ran by its schedule, in order. "phase": "forward", and "backward" or its halves "backward_input" and
 *   "backward_weight" (zb-h1, zb-v). "chunk": which of the stage's parts of the model. "micro_batch": its number in the step, over all data
 *   ranks. "waited_us": time at the beginning of the action in which the rank waited for messages of other stages. "exchanged_us": time
 *   in it in which the rank waited for collectives or ran them itself.
 * - "bubble": the share of the time in which the rank computed nothing, from the first action of any rank, after its wait, to the end of
 *   the last one. Ranks of a communicator share their actions in st_trainer_digest_collective; until then the time is that of the rank's
 *   own. */
ST_API st_status st_trainer_timeline(st_trainer* trainer, const char** json);

/* Logs to `path` from the next step on, one JSON object a line: one for each step, and one for each st_trainer_evaluate and
 * st_trainer_evaluate_average: {"evaluation":{"step":100,"validation_loss":2.9,"metric.accuracy":0.91}}, of the average with
 * "ema_val_loss". Before them, for ranks that are processes on devices of their own memory, one that says how these exchange, and why:
 * {"exchange":{"devices":"devices exchange over nccl 2.28.9"}}. An existing file is started anew; but for a resumed trainer its lines up to
 * the resumed step, with that step's evaluation, stay and are shown in the report. */
ST_API st_status st_trainer_log(st_trainer* trainer, const char* path);
/* Writes the log's last line: state and validation loss (NaN: null), and with ema_decay also ema_val_loss of an evaluate_average since the
 * last step (else null). */
ST_API st_status st_trainer_log_end(st_trainer* trainer, double validation_loss);

/* One self-contained HTML page about the run so far: curves of steps, evaluations and memory. facts: a JSON object of texts and numbers
 * that are shown as they are, {"title": "..", "data": "..", "bigram_loss": 2.5}; or NULL. The file is written as by
 * st_model_write_file(). With pipeline stages that are ranks of a communicator, the page shows the last step's actions of all ranks if
 * they have called st_trainer_digest_collective since, else this rank's. */
ST_API st_status st_trainer_write_report(st_trainer* trainer, const char* path, const char* facts);

ST_END
#endif
