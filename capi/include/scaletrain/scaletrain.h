/* ScaleTrain: a training runtime behind a stable C ABI. This header brings all of it; each noun has one of its own.
 *
 * Rules. A handle is created by st_X_create or the like, destroyed once by st_X_destroy (NULL is fine), and kept alive by what was made of
 * it, so the order of destruction is free. A call on a stale or foreign handle is ST_INVALID_HANDLE, never a crash. One call at a time on a
 * handle, else ST_BUSY; different handles are independent. Structs with a struct_size are filled by their st_X_init(x, sizeof *x) first.
 * After a fork, the child's calls on handles are ST_WRONG_STATE when the parent had made any. Texts are UTF-8. Sizes are bytes or elements,
 * as said. */
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
#include <scaletrain/model.h>
#include <scaletrain/ops.h>
#include <scaletrain/optimizer.h>
#include <scaletrain/pending.h>
#include <scaletrain/predictor.h>
#include <scaletrain/recipe.h>
#include <scaletrain/schedule.h>
#include <scaletrain/sharded_optimizer.h>
#include <scaletrain/tensor.h>
#include <scaletrain/trainer.h>
#include <scaletrain/view.h>

#endif
