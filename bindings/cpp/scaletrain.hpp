// ScaleTrain for C++17: the C ABI as move-only objects and exceptions. Header-only; link scaletrain::scaletrain.
//
// Rules. An object destroys its handle with its scope; close() does it now and says when it cannot. The order is free: what was made of an
// object keeps what it needs. A failed call throws Error, which carries the library's status and message. A callback may throw: its
// exception waits until the library has returned and arrives at the caller. Threads, lifetimes and formats are the C headers'
// (scaletrain/<noun>.h), whose names these follow: st_trainer_step is Trainer::step.
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
#include <scaletrain/predictor.hpp>
#include <scaletrain/recipe.hpp>
#include <scaletrain/schedule.hpp>
#include <scaletrain/sharded_optimizer.hpp>
#include <scaletrain/tensor.hpp>
#include <scaletrain/trainer.hpp>
#include <scaletrain/view.hpp>
