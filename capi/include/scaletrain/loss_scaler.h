/* Loss scaling by itself, for a host with its own forward, backward and optimizer: what to multiply the loss with, so that gradients of
 * 16 bits neither vanish nor overflow; the gradients divided again, in the host's own arrays; and which steps to skip. A trainer of the
 * recipe's precision fp16 needs none of this. */
#ifndef SCALETRAIN_LOSS_SCALER_H
#define SCALETRAIN_LOSS_SCALER_H

#include <scaletrain/context.h>
#include <scaletrain/view.h>

ST_BEGIN

typedef struct st_loss_scaler st_loss_scaler;

/* Defaults: those of torch.amp.GradScaler, and a minimum. Scales are fp32 numbers, from 2^-126 to 2^126. */
typedef struct st_loss_scaler_options {
  uint32_t struct_size;
  int32_t enabled;         /* 0: the scale is 1 and gradients are left as they are; they are looked at all the same, for bf16. Default 1 */
  int32_t dynamic;         /* 0: the scale stays what it is. Default 1 */
  int32_t threads;         /* that unscale works on; 0, the default: the context's */
  double initial_scale;    /* default 65536 */
  double growth_factor;    /* above 1, default 2: after growth_interval steps without a skipped one */
  double backoff_factor;   /* between 0 and 1, default 0.5: after a skipped step */
  int64_t growth_interval; /* steps, 1 or more, default 2000 */
  double minimum_scale;    /* a dynamic scale falls no lower, default 1: an overflow that scaling does not cause would make it 0 */
  int64_t hysteresis;      /* which overflow backs off: 1, the default, each; 2, DeepSpeed's: not the first, but those from the second on */
  int32_t consecutive_hysteresis; /* 1: they are counted anew behind each step without one. 0, the default: when the scale grows */
} st_loss_scaler_options;
ST_API st_status st_loss_scaler_options_init(st_loss_scaler_options* options, size_t size);

/* options NULL: all defaults. ST_INVALID_ARGUMENT names the option and what is allowed. */
ST_API st_status st_loss_scaler_create(st_context* context, const st_loss_scaler_options* options, st_loss_scaler** scaler);
ST_API st_status st_loss_scaler_destroy(st_loss_scaler* scaler);

/* A step is scale, backward, unscale, clip, step, update, in this order. A call out of turn is ST_WRONG_STATE, says so, and changes
 * nothing: unscale twice, step before unscale, update without step.
 *
 * What to multiply the loss with (or the gradient that backward begins from). Once or more often, one for each micro-batch: until update
 * it is the same. */
ST_API st_status st_loss_scaler_scale(st_loss_scaler* scaler, double* scale);
/* Divides the step's n gradients by the scale, in place; all of them in one call, after the last micro-batch is added and ranks have
 * reduced. (B), of ST_F32, ST_F64, ST_BF16 or ST_F16 in any mix, of any dims and strides that give each element memory of its own, aligned
 * to its dtype; no two share memory. Rounded once to their dtype; denormals but those of f16 become 0. `finite`: 1 when no element is inf
 * or NaN afterwards. A bad view is an error before anything is written. */
ST_API st_status st_loss_scaler_unscale(st_loss_scaler* scaler, int64_t n, const st_view* gradients, int32_t* finite);
/* Whether the host's optimizer is to run now: 0 when unscale found inf or NaN. Then nothing of the step may change: no parameter, no
 * moment, no count of steps that a learning rate or a bias correction is made of, no average. */
ST_API st_status st_loss_scaler_step(st_loss_scaler* scaler, int32_t* run);
/* Ends the step and chooses the next one's scale. `skipped` may be NULL: 1 when the optimizer did not run. */
ST_API st_status st_loss_scaler_update(st_loss_scaler* scaler, int32_t* skipped);

/* {"scale":65536.0,"good_steps":12}, with a hysteresis above 1 "overflows_left" too: for a checkpoint, taken between two steps. Owned by
 * the scaler until its next call. */
ST_API st_status st_loss_scaler_state(st_loss_scaler* scaler, const char** json);
/* Goes on from a state of a scaler of the same options. A step under way is forgotten: the next call is scale. */
ST_API st_status st_loss_scaler_restore(st_loss_scaler* scaler, const char* json);

ST_END
#endif
