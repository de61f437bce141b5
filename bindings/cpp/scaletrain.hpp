// ScaleTrain for C++17: the C ABI as move-only objects and exceptions. Header-only; link scaletrain::scaletrain.
//
// - An object destroys its handle at the end of its scope; close() destroys it now and reports why if it cannot. In any order: an object
//   keeps what it was made from alive.
// - A failed call throws Error with the library's status and message.
// - A callback may throw: its exception is kept until the library has returned, and is then rethrown in the caller.
// - Threads, lifetimes and formats are those of the C headers (scaletrain/<noun>.h). Names follow them: st_trainer_step is Trainer::step.
#pragma once

#include <scaletrain/scaletrain.h>

#include <scaletrain/accumulator.hpp>
#include <scaletrain/checkpoint.hpp>
#include <scaletrain/communicator.hpp>
#include <scaletrain/context.hpp>
#include <scaletrain/data.hpp>
#include <scaletrain/data_parallel.hpp>
#include <scaletrain/distributed_sampler.hpp>
#include <scaletrain/dtype.hpp>
#include <scaletrain/error.hpp>
#include <scaletrain/gemm.hpp>
#include <scaletrain/graph.hpp>
#include <scaletrain/handle.hpp>
#include <scaletrain/loss_scaler.hpp>
#include <scaletrain/model.hpp>
#include <scaletrain/ops.hpp>
#include <scaletrain/optimizer.hpp>
#include <scaletrain/pending.hpp>
#include <scaletrain/pipeline.hpp>
#include <scaletrain/plan.hpp>
#include <scaletrain/predictor.hpp>
#include <scaletrain/recipe.hpp>
#include <scaletrain/schedule.hpp>
#include <scaletrain/sharded_optimizer.hpp>
#include <scaletrain/tensor.hpp>
#include <scaletrain/trainer.hpp>
#include <scaletrain/view.hpp>
