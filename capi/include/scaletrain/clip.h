/* Clipping by itself, for a host with its own backward and optimizer. st_optimizer clips on its own, by its keys clip and clip_value, and
 * needs none of this. */
#ifndef SCALETRAIN_CLIP_H
#define SCALETRAIN_CLIP_H

#include <scaletrain/context.h>
#include <scaletrain/view.h>

ST_BEGIN

/* The L2 norm of all n gradients together, before clipping; each is multiplied in place with min(1, max / (norm + 1e-6)), as
 * torch.nn.utils.clip_grad_norm_ does, and left as it is where that is 1. max 0: only `norm`, which may be NULL otherwise.
 *
 * Gradients (B): of ST_F32, ST_F64, ST_BF16 or ST_F16 in any mix, of any dims and strides that give each element memory of its own, aligned
 * to its dtype; no two share memory. The sum is fp64 in the order of a trainer's (blocks of 1024 elements in row-major order, a tree over
 * them, then gradients in theirs), so that norm and factor have a trainer's bits, for any number of threads and any strides; what is not
 * row-major without gaps is copied for it. The factor is rounded to fp32, each product once to its dtype; denormals but those of f16 become
 * 0.
 *
 * A norm that is not finite, since an element is inf or NaN (or the squares of ST_F64 overflow): ST_OK, `norm` says it, and the gradients
 * stay as they are, for the host to look at and to skip the step. (PyTorch's would make zeros and NaN of all of them.) ST_INVALID_ARGUMENT,
 * before anything is written: max below 0 or NaN, and a bad view, which is named by its place. One call at a time on a context: a second
 * one is ST_BUSY. */
ST_API st_status st_clip_norm(st_context* context, int64_t n, const st_view* gradients, double max, double* norm);

ST_END
#endif
