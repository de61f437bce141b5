/* Optimizers without a trainer, for a host with its own forward and backward: a trainer's clip and update, in place over the host's
 * parameters and gradients. The optimizer owns its state. */
#ifndef SCALETRAIN_OPTIMIZER_H
#define SCALETRAIN_OPTIMIZER_H

#include <scaletrain/context.h>
#include <scaletrain/loss_scaler.h>
#include <scaletrain/view.h>

ST_BEGIN

typedef struct st_optimizer st_optimizer;

typedef struct st_optimizer_report {
  uint32_t struct_size;
  int32_t skipped; /* 1: an element of a gradient is inf or NaN, or clip / norm is below 2^-126. Nothing has changed: no parameter, no
                    * state, not `step` */
  int64_t step;    /* updates so far, this one included */
  double lr;       /* of this step, before a group's lr_scale */
  double norm;     /* L2 norm of all gradients together before clipping, fp64 in a fixed order */
} st_optimizer_report;
ST_API st_status st_optimizer_report_init(st_optimizer_report* report, size_t size);

/* json: an object of the recipe's keys, {"optimizer": "adamw", "lr": 1e-3, "clip": 1, "groups": [...]}, or NULL. Ranges and defaults are
 * those of st_recipe_keys, or the optimizer's own; but clip, the maximum global norm, is 0 (off).
 * - Keys: optimizer (adamw, adam, adamw-8bit, sgd, adafactor, lion, rmsprop, adagrad, muon), lr, beta1, beta2, epsilon, weight_decay,
 *   momentum, dampening, nesterov, centered, rate_decay, initial_accumulator_value, beta2_decay, epsilon2, clip_threshold, ns_steps,
 *   adjust_lr; groups, clip, clip_value, threads (0: the context's). There is no schedule: set lr.
 * - muon updates every matrix: use a group to give embeddings, and other matrices that are not weights of products, another "optimizer".
 * - n parameters, 1 or more, separate arrays or slices of one flat buffer: their data is held (H) until st_optimizer_destroy has returned;
 *   names, dims and strides are copied (C). ST_F32 or ST_F64 (for 16-bit weights: an fp32 master), row-major without gaps, aligned to their
 *   dtype. name NULL: "param_0", by its index; groups match names. No two share a name or memory.
 * - ST_INVALID_ARGUMENT names the key (and the nearest), the value, the pattern that matches nothing, the parameter; or says that all are
 *   frozen. ST_UNSUPPORTED: ST_F64 with adamw-8bit. ST_OUT_OF_MEMORY has the bytes that the state needs. */
ST_API st_status st_optimizer_create(st_context* context, const char* json, int64_t n, const st_named_view* parameters,
                                     st_optimizer** optimizer);
ST_API st_status st_optimizer_destroy(st_optimizer* optimizer);

/* One update, in place, with the bits of a trainer's step on the same gradients, for any number of threads. report may be NULL.
 * - n gradients (B), one for each parameter in order, with its dims: ST_F32, ST_BF16 or ST_F16 for an ST_F32 parameter, ST_F64 for an
 *   ST_F64 one; row-major without gaps, aligned to their dtype. They are read twice and not written; the optimizer's clip is applied on the
 *   way. Unscale them before. A frozen parameter's is not read.
 * - If an element is not finite nothing changes, and the report says so, as with torch.amp.GradScaler: ST_OK. A bad view, or one that
 *   shares memory with another or with a parameter, is an error before anything is written.
 * - Only the first step, and the first with other dtypes, allocates memory.
 * - Finite gradients make a finite step. Elements beyond 2^63 (ST_F64: 2^511), whose squares overflow, count as that, except for sgd; an
 *   epsilon below 2^-56 (2^-504) counts as that; sgd's momentum and adagrad's sum saturate at the largest finite number. */
ST_API st_status st_optimizer_step(st_optimizer* optimizer, int64_t n, const st_view* gradients, st_optimizer_report* report);

/* unscale, clip and step of `scaler`'s order in one call, as torch.amp.GradScaler.step with a fused optimizer. The gradients, of a loss
 * that was multiplied by st_loss_scaler_scale, are read twice and not written.
 * - Norm, clip and update use the unscaled values: each element times the clip factor over the scale, in fp32. If the scale is a power of 2
 *   (the default), the gradients are ST_F32 and their quotients normal numbers, the bits are those of st_loss_scaler_unscale and
 *   st_optimizer_step. 16-bit values that an unscale in place would lose below their range are kept.
 * - If an element is not finite nothing changes, and st_loss_scaler_update, the next call, lowers the scale.
 * - ST_WRONG_STATE: it is not unscale's turn. */
ST_API st_status st_optimizer_step_scaled(st_optimizer* optimizer, st_loss_scaler* scaler, int64_t n, const st_view* gradients,
                                          st_optimizer_report* report);

/* The 16-bit weights of a host whose parameters are fp32 masters. They are written now, and by every step in the pass that updates the
 * masters, rounded to nearest even, so that no cast reads the masters again (as DeepSpeed's bf16 optimizer does after its step).
 * - n copies (H) until the next such call or until st_optimizer_destroy has returned: one for each parameter in order, ST_BF16 or ST_F16,
 *   with its dims, row-major without gaps, aligned; data NULL: no copy of that one. n 0: no more copies.
 * - A skipped step does not write them. If the host writes a master, the next step copies it.
 * - ST_INVALID_ARGUMENT names the copy, before anything is written: of an ST_F64 parameter, with other dims, or sharing memory with another
 *   copy, a parameter or (in st_optimizer_step) a gradient. */
ST_API st_status st_optimizer_keep_copies(st_optimizer* optimizer, int64_t n, const st_view* copies);

/* "lr", from the next step on; json: a number, "0.001". ST_UNSUPPORTED for other keys, which are fixed. */
ST_API st_status st_optimizer_set(st_optimizer* optimizer, const char* key, const char* json);

/* The state, for a checkpoint: "step", an ST_I64 scalar, the updates so far; then "moment1.w" and so on for each trained parameter w.
 * - By optimizer: moment1 and moment2 with w's dims (adamw-8bit: ST_U8 with moment1_scale and moment2_scale, one ST_F32 for 256 elements,
 *   from 4096 elements on), momentum, gradient_mean, square_sum, variance, row_variance and column_variance.
 * - The list is (O); its data is valid until the optimizer is destroyed, and may be read and written between two steps. To resume, copy it
 *   into the state of a new optimizer with the same json and parameters. */
ST_API st_status st_optimizer_state_views(st_optimizer* optimizer, int64_t* n, const st_named_view** views);

ST_END
#endif
