/* A plan: what one rank of a run would hold, send and wait for, on a machine that need not be there. Nothing is trained and no rank is
 * started. The same planner makes a trainer's plan, so memory and bytes are those of the run. */
#ifndef SCALETRAIN_PLAN_H
#define SCALETRAIN_PLAN_H

#include <scaletrain/model.h>
#include <scaletrain/recipe.h>
#include <scaletrain/trainer.h>

ST_BEGIN

typedef struct st_plan st_plan;

/* Plans rank `rank` of the recipe's ranks. The model's parameters are not read: with the context's late_parameters they are never made, so
 * that a model of any size can be planned. Model and recipe may be destroyed or changed afterwards.
 * options: a JSON object or NULL; defaults in brackets.
 * - rank: 0 to ranks - 1 [0].
 * - machine: "a100-40g", "a100-80g", "a800-80g", "h100-sxm", "h200", "v100-16g" or "v100-32g", with numbers of data sheets and fitted
 *   efficiencies; or an object that st_machine_calibrate wrote [the context's device, with rates from a table of processors; a device of
 *   its own memory has what the context can have of it, but no rates, and "source" says so]. Measured by another version of the library,
 *   it is planned for, and "source" says so.
 * - device_memory: bytes of a device, on a cpu of a node, which its ranks share [the machine's].
 * - ranks_per_node [the machine's].
 * - link: between nodes, "10g", "25g", "100g", "400g" (Gbit/s a device) or "nvlink" [the machine's].
 * - processes: whether ranks are processes, else threads of one process [true on GPUs].
 * - late_parameters: as the context option, for ranks that are processes [the context's].
 * - auto: searches batch, recompute, zero, offload, stages, schedule and tensor for the fastest recipe that fits and keeps the rows of a
 *   step, and plans that recipe [false].
 * - simulate: simulates the step of all ranks [false].
 * - scaling: for st_plan_report, predicts also the steps of 8, 16, .. up to so many ranks, with the rows of a rank kept [0: none].
 * - fixes: plans changes of the recipe and lists what they save and cost [true if the plan does not fit].
 * - troubles: for simulate, factors on the times of ranks: [{"rank": 3, "computing": 1.5, "exchange": 1}].
 * - failures: simulates a run whose nodes are lost: {"hours_between": 2000, "restart_seconds": 300, "save_seconds": 5,
 *   "steps_between_saves": 0, "steps": 0, "seed": 0, "lost_at": []}. hours_between: that a node runs until it is lost, on average [0: none
 *   but at lost_at, seconds of the run]; restart_seconds: until ranks compute again [300]; save_seconds: that a checkpoint blocks the step
 *   [0]; steps_between_saves [0: the number that loses least]; steps: of the run [0: until about 2,000 nodes are lost].
 *
 * - ST_INVALID_ARGUMENT: an unknown option, machine or link (the nearest is named); a rank outside the run; what a trainer would refuse.
 * - ST_UNAVAILABLE: a machine without rates. */
ST_API st_status st_plan_create(st_model* model, st_recipe* recipe, const char* options, st_plan** plan);
ST_API st_status st_plan_destroy(st_plan* plan);

/* The plan as JSON (O): {"memory":{..},"wire_bytes":..,"collectives":..,"bubble":..,"step_seconds":..,"fits":..,"fixes":[..],..}; all keys
 * are in capi/cli/README.md. fits: on every stage of a pipeline, which "stages" lists; memory: of the planned rank. */
ST_API st_status st_plan_json(st_plan* plan, const char** json);
/* The same for people (O). */
ST_API st_status st_plan_text(st_plan* plan, const char** text);
/* The plan as one self-contained HTML page (O): memory over a step by kind; with simulate, the timeline of the stages and what ranks wait
 * for. */
ST_API st_status st_plan_report(st_plan* plan, const char** html);
/* The simulated step for chrome://tracing and Perfetto (O), as JSON: of all ranks if they are at most 32, else of one of each stage.
 * ST_WRONG_STATE without simulate. */
ST_API st_status st_plan_trace(st_plan* plan, const char** json);
/* The recipe that is planned, as JSON (O): with auto, the one found. */
ST_API st_status st_plan_recipe(st_plan* plan, const char** json);

/* The predicted time of a step of this trainer, from its own plans, as JSON (O): {"step_seconds":..,"measured_seconds":..,"computing":..,
 * "idle":..,"differences":[{"what":"stage 1, forward of a micro-batch","predicted":..,"measured":..}],"ranks":[..],"measured":..,
 * "machine":..,"source":..}.
 * - measured_seconds: the median of the steps so far; null before the first.
 * - differences: of the last step's actions of each stage and of each rank's computing, the largest first.
 * - ranks: what each rank does in the predicted step, as "ranks" of st_trainer_timeline, for pictures of both: times count from the begin
 * of the step; "actions" are there also with one stage; of exchanges only "collective", "label" and times. All ranks if they are at most
 * 32, else the first of each stage.
 * - measured: whether the machine's rates were.
 * - All ranks are simulated; a rank of a group plans the others itself, and no rank waits for another. With a loss of the host, a rank of a
 *   group is predicted alone, as if the other stages took as long, and ranks is empty.
 * machine: an object that st_machine_calibrate wrote, or NULL: this machine, with rates from a table of processors. ST_INVALID_ARGUMENT:
 * one that another version measured, or another machine. */
ST_API st_status st_trainer_forecast(st_trainer* trainer, const char* machine, const char** json);

ST_END
#endif
