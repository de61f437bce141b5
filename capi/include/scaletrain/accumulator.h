/* Gradient accumulation by itself, for a host with its own forward and backward: the gradient of a step that is computed in several
 * micro-batches, over the host's own arrays, with the order of sums and the bits of a trainer's. A trainer with the recipe's accumulate
 * needs none of this. */
#ifndef SCALETRAIN_ACCUMULATOR_H
#define SCALETRAIN_ACCUMULATOR_H

#include <scaletrain/context.h>
#include <scaletrain/view.h>

ST_BEGIN

typedef struct st_accumulator st_accumulator;

/* steps: micro-batches of an optimizer step, 1 to 2^20. n gradients, 1 or more, the arrays that each backward writes anew: (H) their data
 * until st_accumulator_destroy has returned, dims and strides copied. ST_F32, ST_F64, ST_BF16 or ST_F16 in any mix, of any dims and strides
 * that give each element memory of its own, aligned to its dtype; no two share memory. The sums are the accumulator's, made here: fp64 for
 * ST_F64, else fp32, also of 16 bits. Calls allocate nothing.
 * ST_INVALID_ARGUMENT names what is wrong. ST_OUT_OF_MEMORY says what the sums need. */
ST_API st_status st_accumulator_create(st_context* context, int64_t steps, int64_t n, const st_view* gradients,
                                       st_accumulator** accumulator);
ST_API st_status st_accumulator_destroy(st_accumulator* accumulator);

/* Call it after each backward. The arrays hold the gradient of the *sum* of the micro-batch's losses over its tokens: of what a loss with
 * reduction="sum" gives, not a mean, since a mean of means is wrong where micro-batches differ. Backward of a mean is seeded with `weight`
 * to have it. What all micro-batches of the step were multiplied with besides, as a loss scale, or a power of two that keeps sums within
 * 16 bits, stays in the result.
 * weight: the tokens of this micro-batch, from 2^-53 to 2^53, whole or not. 0: it is empty and adds nothing, not even a NaN; the arrays are
 * not looked at. So a step ends early by adding 0 for what is missing.
 * The first writes the sums, the others add, in the order of calls, each rounded to the sum's type; nothing is written to the arrays. The
 * last one of the step writes into them, in place, the gradient of the mean over all tokens of the step: the sum, rounded, times
 * 1 / all weights, rounded once to their dtype. Then they are for unscale, clip and the optimizer, as after one backward of the whole.
 * inf and NaN are added like any number, for the finite check that comes after; denormals but those of f16 count as 0.
 * ST_WRONG_STATE: the step is whole, and should_step has not told. ST_INVALID_ARGUMENT: another weight, or no micro-batch of the step has
 * any. Nothing has changed then. */
ST_API st_status st_accumulator_add(st_accumulator* accumulator, double weight);
/* `yes`: 1 at the boundary, when the arrays hold the gradient of the step: use it now, the next add begins the next step. Else 0: on with
 * the next micro-batch. Until the boundary nothing needs to be exchanged between ranks: reduce when, and only when, this says yes. Where
 * ranks have other numbers of tokens, their means count by st_accumulator_weight. */
ST_API st_status st_accumulator_should_step(st_accumulator* accumulator, int32_t* yes);
/* The weights of the step so far together; at the boundary, and until the next add, reset or set_steps, of the whole step. */
ST_API st_status st_accumulator_weight(st_accumulator* accumulator, double* weight);

/* Forgets what was added since the last boundary: the next add is the first of a step. The arrays stay as they are. */
ST_API st_status st_accumulator_reset(st_accumulator* accumulator);
/* Micro-batches of a step from the next one on. Between two steps only, else ST_WRONG_STATE: before the first add, after should_step said
 * yes, or after a reset. */
ST_API st_status st_accumulator_set_steps(st_accumulator* accumulator, int64_t steps);

/* The state, for a checkpoint in the middle of a step: "added" and "told" (ST_I64 of rank 0: micro-batches that are in, and whether
 * should_step has told of the boundary), "weight" (ST_F64 of rank 0), then "sum.0" and so on for each gradient: ST_F32, of an ST_F64 one
 * ST_F64, [elements], in an order of the gradient's own dims and strides. The list (O), until the next call; the data is the
 * accumulator's until it is destroyed. Between two calls it may be read, and written: to go on from a checkpoint, copy it into that of a
 * new accumulator of the same steps and gradients. At a boundary the mean is in the host's arrays, not in the sums. */
ST_API st_status st_accumulator_state_views(st_accumulator* accumulator, int64_t* n, const st_named_view** views);

ST_END
#endif
