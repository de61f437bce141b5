/* Clipping without a trainer, for a host with its own backward and optimizer. st_optimizer clips by its own keys clip and clip_value. */
#ifndef SCALETRAIN_CLIP_H
#define SCALETRAIN_CLIP_H

#include <scaletrain/context.h>
#include <scaletrain/view.h>

ST_BEGIN

/* norm: the L2 norm of all n gradients together, before clipping. Each is multiplied in place by min(1, max / (norm + 1e-6)), as by
 * torch.nn.utils.clip_grad_norm_; factor 1 leaves them unchanged. max 0: only computes norm, which may otherwise be NULL.
 * - Gradients (B): ST_F32, ST_F64, ST_BF16 or ST_F16 in any mix, any dims, strides without overlap, aligned to the dtype; no two share
 *   memory. Those that are not row-major without gaps are copied for the norm.
 * - Norm and factor have a trainer's bits, for any number of threads and any strides: an fp64 sum over blocks of 1024 elements in row-major
 *   order, a tree over the blocks, then over the gradients in order. The factor is rounded to fp32, each product once to its dtype;
 *   denormals except f16's become 0.
 * - If the norm is not finite (an element is inf or NaN, or squares of ST_F64 overflow), the result is ST_OK with that norm, and the
 *   gradients are unchanged: the host skips the step. (PyTorch would make all of them 0 or NaN.)
 * - ST_INVALID_ARGUMENT, before anything is written: max is negative or NaN, or a view is bad, named by its index. ST_BUSY: another such
 *   call runs on the context. */
ST_API st_status st_clip_norm(st_context* context, int64_t n, const st_view* gradients, double max, double* norm);

ST_END
#endif
