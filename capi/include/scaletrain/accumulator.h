/* Gradient accumulation without a trainer, for a host with its own forward and backward. It sums the gradients of a step's micro-batches
 * over the host's own arrays, in a trainer's order and with its bits. A trainer needs only the recipe's accumulate. */
#ifndef SCALETRAIN_ACCUMULATOR_H
#define SCALETRAIN_ACCUMULATOR_H

#include <scaletrain/context.h>
#include <scaletrain/view.h>

ST_BEGIN

typedef struct st_accumulator st_accumulator;

/* steps: micro-batches of an optimizer step, 1 to 2^20.
 * - n gradients, 1 or more: the arrays that each backward overwrites. Their data is held (H) until st_accumulator_destroy has returned;
 *   dims and strides are copied (C). ST_F32, ST_F64, ST_BF16 or ST_F16 in any mix, any dims, strides without overlap, aligned to the dtype;
 *   no two share memory.
 * - The sums are the accumulator's, allocated here: fp64 for ST_F64, fp32 for all others. Later calls allocate nothing.
 * - ST_INVALID_ARGUMENT names the wrong argument. ST_OUT_OF_MEMORY has the bytes that the sums need. */
ST_API st_status st_accumulator_create(st_context* context, int64_t steps, int64_t n, const st_view* gradients,
                                       st_accumulator** accumulator);
ST_API st_status st_accumulator_destroy(st_accumulator* accumulator);

/* Call it after each backward.
 * - Arrays: the gradient of the *sum* of the micro-batch's losses over its tokens, as with reduction="sum". (A mean of means is wrong if
 *   micro-batches differ; to use a mean loss, seed its backward with `weight`.) A factor that all micro-batches of the step have in common,
 *   such as a loss scale or a power of two that keeps sums within 16 bits, stays in the result.
 * - weight: the tokens of this micro-batch, from 2^-53 to 2^53, whole or not. 0: it is empty and adds nothing, not even a NaN; the arrays
 *   are not read. So a step ends early by adding 0 for each missing micro-batch.
 * - Sums: the first add of a step writes them, the others add in call order, each rounded to the sum's type. Only the last add of the step
 *   writes the arrays, in place: the gradient of the mean over all tokens of the step, the rounded sum times 1 / total weight, rounded once
 *   to their dtype. They are then ready for unscale, clip and the optimizer, as after one backward.
 * - inf and NaN are added like any number, for the later finite check; denormals except f16's count as 0.
 * - ST_WRONG_STATE: the step is complete, and should_step has not reported it yet. ST_INVALID_ARGUMENT: weight is out of range, or no
 *   micro-batch of the step has any. Nothing has changed then. */
ST_API st_status st_accumulator_add(st_accumulator* accumulator, double weight);
/* yes 1: the step's last micro-batch is in, and the arrays hold its gradient: use it now; the next add begins the next step. Else 0:
 * continue with the next micro-batch. Ranks need to reduce only when it is 1; if they have different numbers of tokens, weight their means
 * by st_accumulator_weight. */
ST_API st_status st_accumulator_should_step(st_accumulator* accumulator, int32_t* yes);
/* Sum of the weights of the step so far; of the whole step from its last add until the next add, reset or set_steps. */
ST_API st_status st_accumulator_weight(st_accumulator* accumulator, double* weight);

/* Drops what was added in this step: the next add is the first of a step. The arrays do not change. */
ST_API st_status st_accumulator_reset(st_accumulator* accumulator);
/* Changes the number of micro-batches, from the next step on. Only between two steps, else ST_WRONG_STATE: before the first add, after
 * should_step reported 1, or after a reset. */
ST_API st_status st_accumulator_set_steps(st_accumulator* accumulator, int64_t steps);

/* The state, for a checkpoint in the middle of a step. At the end of a step the mean is in the host's arrays, not here.
 * - "added" and "reported", ST_I64 scalars: micro-batches added, and whether should_step has reported the step complete. "weight", an
 * ST_F64 scalar. "sum.0" and so on for each gradient: [elements], ST_F32 (ST_F64 for ST_F64), in an order that its dims and strides
 * determine.
 * - The list is (O); its data is valid until the accumulator is destroyed, and may be read and written between two calls. To resume, copy
 *   it into the state of a new accumulator with the same steps and gradients. */
ST_API st_status st_accumulator_state_views(st_accumulator* accumulator, int64_t* n, const st_named_view** views);

ST_END
#endif
