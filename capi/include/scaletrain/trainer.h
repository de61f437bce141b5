/* A trainer: one optimizer step at a time, planned whole beforehand. */
#ifndef SCALETRAIN_TRAINER_H
#define SCALETRAIN_TRAINER_H

#include <scaletrain/data.h>
#include <scaletrain/model.h>
#include <scaletrain/recipe.h>

ST_BEGIN

typedef struct st_trainer st_trainer;

typedef struct st_step_report {
  uint32_t struct_size;
  int32_t skipped; /* 1: the gradient was not finite and nothing was updated */
  int64_t step;    /* attempts from 1, skipped ones too */
  double loss;     /* mean over the counted rows of the step, before its update */
  double lr;
  double grad_norm; /* before clipping */
  double loss_scale;
  int64_t tokens; /* since step 1 */
  double tokens_per_second;
  double milliseconds;
  int64_t memory_bytes; /* of all buffers: the plan's device_total, the data's prefetch buffers, and plans that evaluate made */
} st_step_report;

ST_API st_status st_step_report_init(st_step_report* report, size_t size);

/* Plans the step and allocates all of it; a step allocates nothing. Takes a copy of the recipe. data NULL: each step is given its batch.
 * ST_OUT_OF_MEMORY comes with need and supply, before anything is touched. */
ST_API st_status st_trainer_create(st_model* model, st_recipe* recipe, st_data* data, st_trainer** trainer);
ST_API st_status st_trainer_destroy(st_trainer* trainer);

/* One optimizer step. batch: n named views with micro_batches x batch rows each, borrowed during the call; n 0 and NULL: the data's
 * next rows. report may be NULL. A call that fails or is cancelled leaves the state of the last whole step: the next one sees the same rows
 * and the same random numbers. NaN in a batch is ST_NOT_FINITE. One exception: when only the step's log line could not be written the step
 * is done, the report is filled, the log is closed, and the status says why. */
ST_API st_status st_trainer_step(st_trainer* trainer, int64_t n, const st_named_view* batch, st_step_report* report);

/* Steps until `steps` in all are done, or stopped. on_step may be NULL; anything but ST_OK from it ends the run with ST_CALLBACK. It is
 * called between steps and may evaluate, read weights or write the report; for other threads the trainer is ST_BUSY until the run ends. */
typedef st_status (*st_on_step_fn)(void* user, const st_step_report* report);
ST_API st_status st_trainer_run(st_trainer* trainer, int64_t steps, st_on_step_fn on_step, void* user);

/* Ends a run after the running step; from any thread. When none is running, the next one ends before its first step. */
ST_API st_status st_trainer_stop(st_trainer* trainer);
/* Makes the running step or evaluation end with ST_CANCELLED at its next instruction; from any thread. A step that has begun its update
 * ends whole, and the next call is cancelled, as when none is running. One cancel ends one call. */
ST_API st_status st_trainer_cancel(st_trainer* trainer);

typedef struct st_evaluation {
  uint32_t struct_size;
  int32_t reserved;
  double loss;  /* mean over the counted rows, dropout off */
  double count; /* rows counted */
} st_evaluation;

ST_API st_status st_evaluation_init(st_evaluation* evaluation, size_t size);
ST_API st_status st_trainer_evaluate(st_trainer* trainer, st_data* data, st_evaluation* evaluation);

/* 32 hex digits: XXH3-128 over every parameter and optimizer value in name order (name, dtype, shape, bytes). Two runs are equal when it
 * is. This text and the next two are owned by the trainer until its next call. */
ST_API st_status st_trainer_digest(st_trainer* trainer, const char** hex);
/* {"ranks":[{"memory":{"parameters":..,...},"wire_bytes":0,"collectives":0,...}]} */
ST_API st_status st_trainer_plan(st_trainer* trainer, const char** json);
/* Passes with their times, the program, memory by role: for people. */
ST_API st_status st_trainer_explain(st_trainer* trainer, const char** text);

/* From the next step on, one JSON object a step is appended to `path`, which is started anew. */
ST_API st_status st_trainer_log(st_trainer* trainer, const char* path);
/* Writes the log's last line: state and validation loss (NaN: null). */
ST_API st_status st_trainer_log_end(st_trainer* trainer, double validation_loss);

/* One self-contained HTML page about the run so far: curves of the steps, evaluations and memory. facts: a JSON object of texts and
 * numbers shown as they are, {"title": "..", "data": "..", "bigram_loss": 2.5}; or NULL. */
ST_API st_status st_trainer_write_report(st_trainer* trainer, const char* path, const char* facts);

ST_END
#endif
