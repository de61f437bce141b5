/* ScaleTrain: a training runtime with a stable C ABI. This header includes all the others; each noun has its own.
 *
 * Rules for every call:
 * - Handles. Destroy each once, by its st_X_destroy (NULL is allowed), in any order: an object keeps alive what it was made from. A call on
 *   a stale or foreign handle is ST_INVALID_HANDLE, never a crash.
 * - Threads. One call at a time on a handle, else ST_BUSY. Different handles are independent.
 * - Structs with a struct_size: call st_X_init(x, sizeof *x) first.
 * - Memory. (B): borrowed during the call. (H): held, and must stay valid until the stated release. (C): copied. (O): owned by the handle,
 *   valid until its next call.
 * - Fork. In a child, calls on handles are ST_WRONG_STATE if the parent had any handle.
 * - Texts are UTF-8. Sizes are in bytes or elements, as stated. */
#ifndef SCALETRAIN_SCALETRAIN_H
#define SCALETRAIN_SCALETRAIN_H

#include <scaletrain/accumulator.h>
#include <scaletrain/checkpoint.h>
#include <scaletrain/clip.h>
#include <scaletrain/communicator.h>
#include <scaletrain/context.h>
#include <scaletrain/data.h>
#include <scaletrain/data_parallel.h>
#include <scaletrain/distributed_sampler.h>
#include <scaletrain/error.h>
#include <scaletrain/gemm.h>
#include <scaletrain/graph.h>
#include <scaletrain/host_op.h>
#include <scaletrain/layer.h>
#include <scaletrain/library.h>
#include <scaletrain/loss_scaler.h>
#include <scaletrain/machine.h>
#include <scaletrain/model.h>
#include <scaletrain/ops.h>
#include <scaletrain/optimizer.h>
#include <scaletrain/pending.h>
#include <scaletrain/pipeline.h>
#include <scaletrain/plan.h>
#include <scaletrain/predictor.h>
#include <scaletrain/recipe.h>
#include <scaletrain/schedule.h>
#include <scaletrain/sharded_optimizer.h>
#include <scaletrain/tensor.h>
#include <scaletrain/trainer.h>
#include <scaletrain/view.h>

#endif
