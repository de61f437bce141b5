/* Measures this machine, so that the times of training steps can be predicted on it. */
#ifndef SCALETRAIN_MACHINE_H
#define SCALETRAIN_MACHINE_H

#include <scaletrain/context.h>

ST_BEGIN

/* Measures how long the instructions of training steps take here, and writes the rates as JSON: what `scaletrain bench --calibrate` keeps
 * in a file. Trains small built-in models on made-up rows, on one rank with the context's threads, on one with one thread, and on 2 to 8
 * ranks (threads of this process) that share the machine; needs about 2 GB on two cores, and more the more cores. Other work on the machine
 * makes the rates too low. options: NULL, or a JSON object; defaults in brackets.
 * - seconds: time to measure, 0 to 600; it takes a few more, and each model runs at least twice [40].
 * - quick: only the smallest models, on one rank, for which 5 seconds are enough; predicts large models badly [false].
 *
 * machine: JSON, valid until this thread's next call: name, processor, version of the library, memory, and the rates by setting, such as
 *   "rates":[{"threads":2,"ranks":1,"step_seconds":1e-5,"ops":[{"name":"linear.f32","seconds_per_flop":7e-12,"seconds_per_activation":0,
 *   "seconds_by_bytes":[[0,1e-6],[256000,9e-6]]}]}]
 *
 * An instruction takes seconds_per_flop times its arithmetic (a multiply-add counts as two), seconds_per_activation for each element of an
 * activation that a product applies, and what the list gives for the bytes that it moves, linear between the points. step_seconds is what
 * a step takes besides. A set with "memory_bytes" above 0 is for plans of at most so much memory.
 * Results of trainers do not change. ST_INVALID_ARGUMENT: an option is unknown or out of range. ST_UNSUPPORTED: the context's device has
 * its own memory; no GPU has been measured yet. ST_CANCELLED: st_context_cancel, which ends it within a step. ST_OUT_OF_MEMORY: there is no
 * memory for any of the models. */
ST_API st_status st_machine_calibrate(st_context* context, const char* options, const char** machine);

ST_END
#endif
