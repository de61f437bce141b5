/* A schedule without a trainer: the learning rate as a function of successful steps. A trainer has its own. */
#ifndef SCALETRAIN_SCHEDULE_H
#define SCALETRAIN_SCHEDULE_H

#include <scaletrain/error.h>

ST_BEGIN

typedef struct st_schedule st_schedule;

/* json: an object of the recipe's schedule keys, {"schedule": "cosine", "lr": 1e-3, "warmup": 20, "lr_steps": 1000}, or NULL; keys left out
 * have the recipe's defaults (constant, lr 1e-3, warmup 20). "schedule" and "lr_schedule" are the same key; the others are lr, warmup,
 * lr_steps, lr_min, lr_power, lr_cycles, lr_cycle_growth, lr_decay_steps, lr_decay, lr_pct_start, lr_div_factor, lr_final_div_factor and
 * lr_table (ranges and meaning: st_recipe_keys). ST_INVALID_ARGUMENT, with the keys and their values: an unknown key (the nearest is
 * named), a missing length, a contradiction.
 *
 * With k successful steps before this one, W = warmup, S = lr_steps, D = S - W, j = k - W, m = lr_min and c(x) = (1 + cos(pi x)) / 2: for k
 * < W the rate rises in equal steps to the schedule's start, lr (k+1)/W; from S on it stays as at S; in between it is
 *   constant      lr
 *   linear        m + (lr - m) (1 - j/D)
 *   polynomial    m + (lr - m) (1 - j/D)^lr_power
 *   cosine        m + (lr - m) c(j/D); in lr_cycles cycles, each from lr again and lr_cycle_growth times as long as the one before
 *   inverse_sqrt  max(m, lr sqrt(max(W, 1) / (k+1))), without a length
 *   wsd           lr; falling to m in the last lr_decay_steps of S by lr_decay: "linear", "cosine", "1-sqrt"
 *   one_cycle     by cosine from a = lr / lr_div_factor to lr at j = lr_pct_start D - 1, and to a / lr_final_div_factor at j = D - 1; its
 *                 warm-up rises to a
 *   table         lr_table "0:1e-3 100:5e-4": 1e-3 from k = 0 on and 5e-4 from k = 100 on, without interpolation; for k < W times (k+1)/W
 * With warmup 0, linear, cosine, polynomial and one_cycle are PyTorch's LinearLR, CosineAnnealingLR (in cycles
 * CosineAnnealingWarmRestarts), PolynomialLR and OneCycleLR. */
ST_API st_status st_schedule_create(const char* json, st_schedule** schedule);
ST_API st_status st_schedule_destroy(st_schedule* schedule);

/* The learning rate of the step after `step` successful ones, from 0 on; a skipped step does not count. A pure function. */
ST_API st_status st_schedule_at(st_schedule* schedule, int64_t step, double* lr);

ST_END
#endif
