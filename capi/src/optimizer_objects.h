// The parts of a step over a host's arrays: schedule, loss scaler, accumulator, optimizers and exchange of gradients.
#pragma once

#include <scaletrain/scaletrain.h>

#include <memory>
#include <utility>
#include <vector>

#include "communicator_object.h"
#include "gradient_views.h"
#include "object_handles.h"
#include "optim/lr_schedule.h"
#include "optimizer_arguments.h"
#include "parts/accumulator.h"
#include "parts/context.h"
#include "parts/gradient_exchange.h"
#include "parts/host_optimizer.h"
#include "parts/scaled_step.h"
#include "parts/sharded_optimizer.h"

namespace st::capi {

struct ScheduleObject final : Object {
  explicit ScheduleObject(LrSchedule made) : schedule(std::move(made)) {}
  const LrSchedule schedule;
};

struct LossScalerObject final : Object {
  std::shared_ptr<Context> context;
  std::unique_ptr<ScaledStep> step;
  GradientViews gradients;
  std::vector<GradientArray> arrays;  // kept so that a step allocates nothing
};

struct OptimizerObject final : Object {
  std::unique_ptr<HostOptimizer> optimizer;
  std::vector<HostView> gradients;  // kept so that a step allocates nothing
  StateViews state;                 // of what state_views returned
};

struct AccumulatorObject final : Object {
  std::shared_ptr<Context> context;
  std::unique_ptr<Accumulator> accumulator;
  std::vector<Accumulator::StateArray> arrays;  // of what state_views returned
  std::vector<st_named_view> state;
};

struct DataParallelObject final : Object {
  std::shared_ptr<CommunicatorObject> group;  // whose queue does the work
  std::unique_ptr<GradientExchange> exchange;
};

struct ShardedOptimizerObject final : Object {
  std::shared_ptr<CommunicatorObject> group;  // whose queue does the work
  std::unique_ptr<ShardedOptimizer> optimizer;
  std::vector<HostView> gradients;  // kept so that a step allocates nothing
  StateViews state;                 // of what gather_state returned
};

ST_HANDLE(st_schedule, schedule, ScheduleObject)
ST_HANDLE(st_loss_scaler, loss_scaler, LossScalerObject)
ST_HANDLE(st_optimizer, optimizer, OptimizerObject)
ST_HANDLE(st_accumulator, accumulator, AccumulatorObject)
ST_HANDLE(st_data_parallel, data_parallel, DataParallelObject)
ST_HANDLE(st_sharded_optimizer, sharded_optimizer, ShardedOptimizerObject)

}  // namespace st::capi
