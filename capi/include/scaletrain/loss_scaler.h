/* Loss scaling without a trainer, for a host with its own forward, backward and optimizer: the factor for the loss, so that 16-bit
 * gradients neither vanish nor overflow; the division of the gradients, in the host's arrays; and the decision which steps to skip. A
 * trainer needs only the recipe's precision fp16. */
#ifndef SCALETRAIN_LOSS_SCALER_H
#define SCALETRAIN_LOSS_SCALER_H

#include <scaletrain/context.h>
#include <scaletrain/view.h>

ST_BEGIN

typedef struct st_loss_scaler st_loss_scaler;

/* Defaults are those of torch.amp.GradScaler, with a minimum. Scales are fp32 numbers, from 2^-126 to 2^126. */
typedef struct st_loss_scaler_options {
  uint32_t struct_size;
  int32_t enabled;         /* 0: the scale is 1 and gradients are unchanged, but still checked for inf and NaN, for bf16. Default 1 */
  int32_t dynamic;         /* 0: the scale is constant. Default 1 */
  int32_t threads;         /* of unscale; 0, the default: the context's */
  double initial_scale;    /* default 65536 */
  double growth_factor;    /* above 1, default 2: after growth_interval steps without a skipped one */
  double backoff_factor;   /* between 0 and 1, default 0.5: after a skipped step */
  int64_t growth_interval; /* steps, 1 or more, default 2000 */
  double minimum_scale;    /* of a dynamic scale, default 1: overflows that scaling does not cause would make it 0 */
  int64_t hysteresis;      /* the scale is lowered by each overflow from this one on. 1, the default: by every one; 2: as DeepSpeed */
  int32_t consecutive_hysteresis; /* 1: the count of overflows restarts after each step without one. 0, the default: when the scale grows */
} st_loss_scaler_options;
ST_API st_status st_loss_scaler_options_init(st_loss_scaler_options* options, size_t size);

/* options NULL: the defaults. ST_INVALID_ARGUMENT names the option and its range. */
ST_API st_status st_loss_scaler_create(st_context* context, const st_loss_scaler_options* options, st_loss_scaler** scaler);
ST_API st_status st_loss_scaler_destroy(st_loss_scaler* scaler);

/* A step is scale, backward, unscale, clip, step, update, in this order. A call out of turn is ST_WRONG_STATE and changes nothing: unscale
 * twice, step before unscale, update without step.
 *
 * scale: the factor for the loss, or for the gradient that backward starts from. May be called for each micro-batch; it does not change
 * until update. */
ST_API st_status st_loss_scaler_scale(st_loss_scaler* scaler, double* scale);
/* Divides the step's n gradients by the scale, in place. Pass all of them in one call, after the last micro-batch is added and ranks have
 * reduced. (B): ST_F32, ST_F64, ST_BF16 or ST_F16 in any mix, any dims, strides without overlap, aligned to the dtype; no two share memory.
 * Each is rounded once to its dtype; denormals except f16's become 0. finite: 1 if no result is inf or NaN. A bad view is an error before
 * anything is written. */
ST_API st_status st_loss_scaler_unscale(st_loss_scaler* scaler, int64_t n, const st_view* gradients, int32_t* finite);
/* run 1: run the host's optimizer now. 0: unscale found inf or NaN; then the step must change nothing: no parameter, no moment, no step
 * count that a learning rate or bias correction uses, no average. */
ST_API st_status st_loss_scaler_step(st_loss_scaler* scaler, int32_t* run);
/* Ends the step and chooses the next scale. skipped (may be NULL): 1 if the optimizer did not run. */
ST_API st_status st_loss_scaler_update(st_loss_scaler* scaler, int32_t* skipped);

/* {"scale":65536.0,"good_steps":12}, and "overflows_left" with a hysteresis above 1: for a checkpoint, between two steps. (O) */
ST_API st_status st_loss_scaler_state(st_loss_scaler* scaler, const char** json);
/* Continues from the state of a scaler with the same options. An unfinished step is dropped: the next call is scale. */
ST_API st_status st_loss_scaler_restore(st_loss_scaler* scaler, const char* json);

ST_END
#endif
