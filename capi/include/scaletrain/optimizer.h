/* Optimizers by themselves, for a host with its own forward and backward: a trainer's clip and update over the host's own parameters and
 * gradients, where they lie. The state is the optimizer's. */
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
                      state, not `step` */
  int64_t step;    /* updates so far, this one included */
  double lr;       /* of this step, before a group's lr_scale */
  double norm;     /* L2 norm of all gradients together before clipping, fp64 in a fixed order */
} st_optimizer_report;
ST_API st_status st_optimizer_report_init(st_optimizer_report* report, size_t size);

/* json: an object of the recipe's keys, {"optimizer": "adamw", "lr": 1e-3, "clip": 1, "groups": [...]}, or NULL; of the optimizer (adamw,
 * adam, adamw-8bit, sgd, adafactor, lion, rmsprop, adagrad, muon): lr, beta1, beta2, epsilon, weight_decay, momentum, dampening, nesterov,
 * centered, rate_decay, initial_accumulator_value, beta2_decay, epsilon2, clip_threshold, ns_steps, adjust_lr; and groups, clip, clip_value
 * and threads (0: the context's). Their ranges and defaults are st_recipe_keys', each optimizer's own where it has some; but clip, the
 * largest global norm, is 0, off. There is no schedule: set lr. muon updates every matrix; give those that are no weights of products,
 * embeddings, another "optimizer" by a group.
 *
 * n parameters, 1 or more, scattered or pieces of one flat buffer: (H) their data until st_optimizer_destroy has returned, names, dims and
 * strides copied. ST_F32 or ST_F64 (of weights in 16 bits: an fp32 master), row-major without gaps, aligned to their dtype. name NULL:
 * "param_0", by its place; groups go by names. No two share a name or memory.
 * ST_INVALID_ARGUMENT names what is wrong: a key (and the nearest), a value, a pattern that fits nothing, a parameter, all of them frozen.
 * ST_UNSUPPORTED: ST_F64 by adamw-8bit. ST_OUT_OF_MEMORY says what the state needs. */
ST_API st_status st_optimizer_create(st_context* context, const char* json, int64_t n, const st_named_view* parameters,
                                     st_optimizer** optimizer);
ST_API st_status st_optimizer_destroy(st_optimizer* optimizer);

/* One update, in place, with the bits of a trainer's step by the same gradients, for any number of threads. n gradients (B), one for each
 * parameter in their order, of its dims; of an ST_F32 parameter ST_F32, ST_BF16 or ST_F16, of an ST_F64 one ST_F64; row-major without gaps,
 * aligned to their dtype; that of a frozen parameter is not looked at. They are read twice and not written: unscale them before; an
 * optimizer with clip clips on the way. Where one is not finite, nothing changes and the report says so, as torch.amp.GradScaler would
 * have it: ST_OK. A bad view, and one that shares memory with another or with a parameter, is an error before anything is written.
 * report may be NULL. After the first step, and one with other dtypes, nothing is allocated.
 * Any finite gradient makes a finite step: but for sgd's, elements beyond 2^63 (ST_F64: 2^511) count as that, as their squares are beyond
 * the type; an epsilon below 2^-56 (2^-504) counts as that; sgd's momentum and adagrad's sum end at the largest finite number. */
ST_API st_status st_optimizer_step(st_optimizer* optimizer, int64_t n, const st_view* gradients, st_optimizer_report* report);

/* unscale, clip and step of `scaler`'s order in one, with two reads of the gradients, which are not written: they are the scaled ones, of a
 * loss that was multiplied with st_loss_scaler_scale. Norm, clip and update go by the true ones, each element multiplied in fp32 by the
 * clip's factor over the scale: with a scale that is a power of 2, as by default, and gradients in ST_F32 whose quotients are normal
 * numbers, the bits of st_loss_scaler_unscale and st_optimizer_step. (Unscaled in place, 16 bits lose what falls below their range; here
 * they do not.) Where an element is not finite nothing changes, and st_loss_scaler_update, the next call, lowers the scale. ST_WRONG_STATE:
 * it is not unscale's turn. What torch.amp.GradScaler.step does with a fused optimizer. */
ST_API st_status st_optimizer_step_scaled(st_optimizer* optimizer, st_loss_scaler* scaler, int64_t n, const st_view* gradients,
                                          st_optimizer_report* report);

/* The weights in 16 bits that a host computes with, where its parameters are their fp32 masters: written now, and by every step in the pass
 * that updates the master, rounded to nearest even, so that no cast reads the masters again. n copies (H), until the next such call or
 * st_optimizer_destroy has returned: one for each parameter in their order, ST_BF16 or ST_F16, of its dims, row-major without gaps,
 * aligned; data NULL: none of that one. A skipped step leaves them; a master that the host itself writes is copied by the next step. n 0:
 * no more copies. What DeepSpeed's bf16 optimizer does behind its step. ST_INVALID_ARGUMENT names the copy, before anything is written: one
 * of an ST_F64 parameter, other dims, memory that is shared with another copy, a parameter or (in st_optimizer_step) a gradient. */
ST_API st_status st_optimizer_keep_copies(st_optimizer* optimizer, int64_t n, const st_view* copies);

/* "lr", from the next step on; json: a number, "0.001". ST_UNSUPPORTED for the other keys: they are fixed. */
ST_API st_status st_optimizer_set(st_optimizer* optimizer, const char* key, const char* json);

/* The state, for a checkpoint: "step", ST_I64 of rank 0, the updates so far; then "moment1.w" and so on for each parameter w that is
 * trained: moment1 and moment2 of its dims (adamw-8bit: ST_U8 with moment1_scale and moment2_scale, ST_F32 of one in 256 elements, from
 * 4096 elements on), momentum, gradient_mean, square_sum, variance, row_variance and column_variance, as the optimizer has them. The list
 * (O), until the next call; the data is the optimizer's until it is destroyed. Between two steps it may be read, and written: to go on
 * from a checkpoint, copy it into that of a new optimizer of the same json and parameters. */
ST_API st_status st_optimizer_state_views(st_optimizer* optimizer, int64_t* n, const st_named_view** views);

ST_END
#endif
