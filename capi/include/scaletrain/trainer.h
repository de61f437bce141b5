/* A trainer: one optimizer step at a time, planned whole beforehand. */
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
  int32_t skipped; /* 1: the gradient was not finite, or too large to be clipped (st_optimizer_report), and nothing was updated */
  int64_t step;    /* attempts from 1, skipped ones too */
  double loss;     /* mean over the counted rows of the step, before its update */
  double lr;
  double grad_norm;  /* before clipping */
  double loss_scale; /* that this step's loss was scaled with; 1 unless the recipe's precision is fp16 */
  int64_t tokens;    /* since step 1 */
  double tokens_per_second;
  double milliseconds;
  int64_t memory_bytes;        /* of all buffers: the plan's device_total, the data's prefetch buffers, and plans that evaluate made */
  double gradient_noise_scale; /* in rows of a batch: from the recipe's key of that name; NaN: not measured, or not known yet */
  const char* save_error;      /* why a save of st_trainer_save_every failed, told once; NULL: none did. Owned by the trainer until its next
                                  call */
  int64_t saved_step;          /* of the newest checkpoint that such saves brought to the disk; -1: none yet */
} st_step_report;

ST_API st_status st_step_report_init(st_step_report* report, size_t size);

/* Plans the step and allocates all of it; a step allocates nothing. Takes a copy of the recipe. data NULL: each step is given its batch.
 * ST_OUT_OF_MEMORY comes with need and supply, before anything is touched. */
ST_API st_status st_trainer_create(st_model* model, st_recipe* recipe, st_data* data, st_trainer** trainer);
/* The trainer of one rank of the communicator, which it keeps. Every rank calls this with the same model, recipe and data, and then makes
 * the same steps; the states are those of ranks as threads. A batch that is given holds this rank's rows: of micro-batches g * size + rank.
 * ST_RANK_MISMATCH on all ranks: they differ, in what the text says. Any other error of a step on one rank ends the group: the others get
 * ST_RANK_FAILED with its reason.
 * With zero 1 and 2 calls that read or write the optimizer state, and with zero 3 calls that need whole parameters, are made by all ranks
 * between the same steps. capi/trainer_in_group.md lists the calls, what is compared, what each stage keeps, and what an error costs. */
ST_API st_status st_trainer_create_in_group(st_model* model, st_recipe* recipe, st_data* data, st_communicator* communicator,
                                            st_trainer** trainer);
ST_API st_status st_trainer_destroy(st_trainer* trainer);

/* One optimizer step. batch: n named views with micro_batches x batch rows each, borrowed during the call, of any strides (what is not
 * row-major is copied); with fewer rows only the last micro-batch that has any is short, and those without add nothing: the loss is the
 * mean over the rows that are there. n 0 and NULL: the data's next rows. report may be NULL. A call that fails or is cancelled leaves the
 * state of the last whole step: the next one sees the same rows and the same random numbers. NaN in a batch is ST_NOT_FINITE. One
 * exception: when only the step's log line could not be written the step is done, the report is filled, the log is closed, and the status
 * says why. */
ST_API st_status st_trainer_step(st_trainer* trainer, int64_t n, const st_named_view* batch, st_step_report* report);

/* Steps until `steps` in all are done, or stopped. on_step may be NULL; anything but ST_OK from it ends the run with ST_CALLBACK. It is
 * called between steps, on the thread that made the call, and may make every call on this trainer but run and destroy, which are ST_BUSY.
 * Steps that it makes count, without an on_step of their own, and after a resume the run goes on from that step. A step that it begins by
 * advance or forward it ends too: else the run's next one is ST_WRONG_STATE. For other threads the trainer is ST_BUSY until the run ends.
 */
typedef st_status (*st_on_step_fn)(void* user, const st_step_report* report);
ST_API st_status st_trainer_run(st_trainer* trainer, int64_t steps, st_on_step_fn on_step, void* user);

/* The same step in slices: works for about `nanoseconds` and says in `done` whether the step is finished; call it again, with the same
 * batch (borrowed until then) or n 0 for the data's rows, until it is. Overruns by at most one instruction; rows that a
 * callback is late with are waited for no longer than that. The bits are those of
 * st_trainer_step. Until it is done, the trainer's step, run, evaluate, digest, gradient, forward, backward, apply, log_end, write_report
 * and the calls on the average are ST_WRONG_STATE, and what reads or writes the weights of an update that has begun is ST_BUSY; a cancel
 * undoes the slices of a step whose update has not. With ranks 2 or more all of the step is done in one call. report may be NULL and is
 * filled when done. */
ST_API st_status st_trainer_advance(st_trainer* trainer, int64_t n, const st_named_view* batch, int64_t nanoseconds, int32_t* done,
                                    st_step_report* report);

/* A step whose loss the host computes: forward, the host's loss, backward, apply. forward runs one micro-batch of `batch` rows of the
 * recipe (borrowed until the backward behind it has returned, which reads them too), dropout on, and gives the graph's outputs (owned by
 * the trainer until its next call); inputs that only the graph's loss reads may be left out. backward takes the loss's gradients by output
 * name (outputs left out count as 0, those named "metric.*" get none); NULL: the graph's own loss. More pairs of forward and backward add
 * up; what the host gives is divided by nothing, and multiplied by nothing: with precision fp16 the trainer scales it itself, unscales it,
 * and skips a step that overflows (also with find_nan, which covers step, run and advance). apply clips and updates by the sum, and ends
 * the step; its report's loss is NaN unless the graph's own loss was used. The pairs of a step that was begun are undone by a cancel or an
 * error of these three; until apply, the trainer's step, run, advance, digest, gradient, use_average, log_end and write_report are
 * ST_WRONG_STATE, and evaluate changes nothing of it. Without a loss in the graph only these three train.
 * Of ranks as threads of one trainer they are ST_UNSUPPORTED, since each rank would have outputs of its own to give; in a group
 * (st_trainer_create_in_group) each rank has rows, outputs and gradients of its own, and all call alike. With the recipe's reduce micro a
 * backward waits for those of the other ranks, of which each makes as many: pair g of rank r is micro-batch g * size + r, and the bits are
 * those of one rank that makes all pairs in that order. With reduce step each adds up as many of its own as it likes, one or more, and
 * apply adds the ranks' sums in their order; but with zero 3 a forward waits for the others' pieces, and all make as many. apply waits for
 * all ranks; ST_RANK_MISMATCH on all of them tells who is at another update, rate or number of pairs, or has other weights where those are
 * compared, and undoes the pairs. Any other error of the three on a rank ends the group, as that of a step. */
ST_API st_status st_trainer_forward(st_trainer* trainer, int64_t n, const st_named_view* batch, int64_t* m, const st_named_view** outputs);
ST_API st_status st_trainer_backward(st_trainer* trainer, int64_t m, const st_named_view* output_gradients);
ST_API st_status st_trainer_apply(st_trainer* trainer, st_step_report* report);

/* Copies a parameter's gradient of the last step, before clipping, of the mean loss (after apply: of what the host gave); f32, of the
 * parameter's shape. ST_WRONG_STATE before the first step and while, or after, a step was begun that did not end. */
ST_API st_status st_trainer_gradient(st_trainer* trainer, const char* name, const st_view* to);
/* Changes a key of the recipe from the next step on: lr, warmup, lr_schedule and what it is made from (schedule.h). Where the keys then
 * contradict each other, as a schedule without the length that it needs, it is ST_INVALID_ARGUMENT and nothing has changed. What the plan
 * was made from is ST_UNSUPPORTED, and says so. */
ST_API st_status st_trainer_set(st_trainer* trainer, const char* key, const char* json_value);
/* The learning rate by the host, from the next step on, in place of the recipe's schedule and its warm-up. Writes that of the step after k
 * successful ones, so that a skipped step asks for the same k again. It is called once at the beginning of each step, on the thread that
 * makes the call, before anything of the step is done; never twice at once. Anything but ST_OK, or a rate that is not finite or is below 0,
 * ends the step with ST_CALLBACK, and the state is that of the last whole step. Calls on this trainer from it are ST_BUSY. */
typedef st_status (*st_learning_rate_fn)(void* user, int64_t k, double* lr);
/* rate and user are held until release(user) is called, once, from whatever thread it is that replaces them or destroys the trainer;
 * release may be NULL, and is not called when this call fails. rate NULL: the recipe's schedule again, and release is not held. */
ST_API st_status st_trainer_set_schedule(st_trainer* trainer, st_learning_rate_fn rate, st_release_fn release, void* user);
/* A key of the recipe as it is now. Owned by the trainer until its next call. */
ST_API st_status st_trainer_get(st_trainer* trainer, const char* key, const char** json_value);

/* Ends a run after the running step; from any thread. When none is running, the next one ends before its first step. */
ST_API st_status st_trainer_stop(st_trainer* trainer);
/* Makes the running step or evaluation end with ST_CANCELLED at its next instruction, or within a few milliseconds while it waits for rows
 * of a callback; from any thread. A step that has begun its update ends whole, and the next call is cancelled, as when none is running. One
 * cancel ends one call. */
ST_API st_status st_trainer_cancel(st_trainer* trainer);

/* Frozen, like st_view: an array of it is given. */
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
  const st_metric* metrics; /* of each output named "metric.*": the mean over its elements and all rows, of losses over what they count;
                               owned by the trainer until its next call */
} st_evaluation;

ST_API st_status st_evaluation_init(st_evaluation* evaluation, size_t size);
ST_API st_status st_trainer_evaluate(st_trainer* trainer, st_data* data, st_evaluation* evaluation);

/* The exponential moving average of the weights, which the recipe's ema_decay keeps; without it these three are ST_WRONG_STATE. Before the
 * first successful step the weights are their average; a parameter that is not trained always is.
 * evaluate_average is evaluate with the averages in the weights' place, which are not touched. average copies one parameter's, as
 * st_model_get. use_average makes the averages the model's weights, from which training goes on; the averages stay as they are. */
ST_API st_status st_trainer_evaluate_average(st_trainer* trainer, st_data* data, st_evaluation* evaluation);
ST_API st_status st_trainer_average(st_trainer* trainer, const char* name, const st_view* to);
ST_API st_status st_trainer_use_average(st_trainer* trainer);

/* 32 hex digits: XXH3-128 over every parameter and optimizer value in name order (name, dtype, shape, bytes). Two runs are equal when it
 * is. This text and the next two are owned by the trainer until its next call. Of ranks that have pieces of the state all call, as often as
 * any does: whether something has changed since, they ask each other. log_end and write_report of one rank alone take what that has told,
 * until all go on; ST_WRONG_STATE where this rank's weights were set since. */
ST_API st_status st_trainer_digest(st_trainer* trainer, const char** hex);
/* {"rows_per_step":..,"ranks":[{"memory":{"parameters":..,...},"wire_bytes":..,"collectives":..,...}]}: rows of all ranks together; each
 * rank of this process. "device_total" is without "file_total", what offload_folder has. "wire_bytes": of elements that the rank sends in a
 * step of all rows, by op in "wire"; what ranks compare beside a step is not in it. "micro_batches" are rounds of the step. "recompute":
 * bytes of stash before and after, extra_flops (of products and attention) and extra_bytes (that other ops read and write) in each
 * micro-batch, in all and by scope. */
ST_API st_status st_trainer_plan(st_trainer* trainer, const char** json);
/* Passes with their times, the program, memory by role: for people. */
ST_API st_status st_trainer_explain(st_trainer* trainer, const char** text);
/* Where the time of the last steps went, by rank; of one rank nothing is in the lists. Owned by the trainer until its next call.
 * {"steps":[{"step":12,"straggler":1.04,"ranks":[{"milliseconds":..,"computing":..,"exchange":..,"hidden":..},..]},..],
 *  "ranks":[{"rank":0,"step":12,"milliseconds":..,"computing":..,"exchange":..,"hidden":..,"began_us":..,"ended_us":..,
 *            "computed_us":[[began,ended],..],"exchanges":[..]},..]}
 * "steps": of all ranks, at most the last 16. "computing": milliseconds in which the rank neither waited for an exchange nor made one
 * itself; "hidden": the share of its "exchange" that went on beside its computing; "straggler": the slowest rank's computing by the mean of
 * all. Ranks of a communicator tell each other when the next st_trainer_step or st_trainer_advance begins, so their newest step is missing
 * (and steps behind which none of these came). "ranks": those of this process, in their newest step: when they computed, by this machine's
 * monotonic clock, and their exchanges as st_communicator_flight_record has them; of each the last 64 at most. */
ST_API st_status st_trainer_timeline(st_trainer* trainer, const char** json);

/* From the next step on, one JSON object a step is appended to `path`, which is started anew, and one for each st_trainer_evaluate and
 * st_trainer_evaluate_average: {"evaluation":{"step":100,"validation_loss":2.9,"metric.accuracy":0.91}}, of the average with
 * "ema_val_loss". Of a trainer that was resumed, what is there up to its step stays, its evaluation too, and what follows is dropped. What
 * stays is shown in the report, too. */
ST_API st_status st_trainer_log(st_trainer* trainer, const char* path);
/* Writes the log's last line: state and validation loss (NaN: null), and with ema_decay also ema_val_loss, of an evaluate_average behind
 * the last step (else null). */
ST_API st_status st_trainer_log_end(st_trainer* trainer, double validation_loss);

/* One self-contained HTML page about the run so far: curves of the steps, evaluations and memory. facts: a JSON object of texts and
 * numbers shown as they are, {"title": "..", "data": "..", "bigram_loss": 2.5}; or NULL. The file is written as st_model_write_file() does.
 */
ST_API st_status st_trainer_write_report(st_trainer* trainer, const char* path, const char* facts);

ST_END
#endif
