// What stands behind each kind of handle.
#pragma once

#include <scaletrain/scaletrain.h>

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/pending.h"
#include "base/work_queue.h"
#include "checkpoint/checkpoint_manager.h"
#include "comm/communicator.h"
#include "data/dataset.h"
#include "data/distributed_sampler.h"
#include "gradient_views.h"
#include "guard.h"
#include "handles.h"
#include "ir/build.h"
#include "load_report.h"
#include "optim/lr_schedule.h"
#include "optimizer_arguments.h"
#include "parts/accumulator.h"
#include "parts/gemm_plan.h"
#include "parts/gradient_exchange.h"
#include "parts/scaled_step.h"
#include "strided_layout.h"
#include "train/context.h"
#include "train/host_optimizer.h"
#include "train/model.h"
#include "train/norm_clip.h"
#include "train/predictor.h"
#include "train/recipe.h"
#include "train/sharded_optimizer.h"
#include "train/step_history.h"
#include "train/trainer.h"
#include "usual_operands.h"

namespace st::capi {

struct ContextObject final : Object {
  std::shared_ptr<Context> context;
  std::unique_ptr<NormClip> clip;  // made when first used
  GradientViews gradients;         // of it
};

/// The graph as the host builds it. Host ids are positions in `values`, from 1.
struct GraphObject final : Object {
  std::shared_ptr<Context> context;
  Program program;
  std::vector<RegionId> scopes;
  std::vector<Value> values;
  double parameter_elements = 0;  // a double says "too many" where int64 would wrap around
  std::optional<Error> first_error;
};

struct DataObject final : Object {
  std::shared_ptr<const TokenSource> source;  // null: not of files, and then there is no range
  TokenRange range;
  int64_t context = 0;
  std::shared_ptr<const Dataset> dataset;
};

struct RecipeObject final : Object {
  Recipe recipe;
};

struct CheckpointObject final : Object, Trimmable {
  explicit CheckpointObject(std::string path) : folder(std::move(path)) {}

  void trim() override { saves().trim(); }

  /// Throws wrong_state where the handle only reads; `together`: of what ranks save together it writes all the same. Of several threads at
  /// once.
  CheckpointManager& to_save(const char* call, bool together = false) const {
    if (together) return saves();
    require(manager != nullptr, Code::wrong_state, call, ": ", folder.path(), " was opened read_only; open it without");
    return *manager;
  }
  CheckpointManager& saves() const { return manager ? *manager : *beside; }

  std::shared_ptr<Context> context;
  std::unique_ptr<Workers> workers;
  RunFolder folder;
  bool is_one = false;                         // the folder is a checkpoint itself
  WriteOptions writing;                        // of what is written beside the manager's saves
  LoadReport report;                           // of the last load
  std::unique_ptr<CheckpointManager> manager;  // null: read_only
  std::unique_ptr<CheckpointManager> beside;   // then: for what ranks save together, of which this is not rank 0
};

/// What a trainer saves by itself, and what became of it.
struct BackgroundSaves {
  std::shared_ptr<CheckpointObject> checkpoint;  // null: nothing
  int64_t steps = 0;                             // 0: not by steps
  double minutes = 0, last = 0;                  // 0: not by time; when the last save began
  std::string error;                             // that the last step's report tells
};

struct CommunicatorObject final : Object {
  std::shared_ptr<Context> context;
  std::atomic<uint64_t> cancels{0};               // of the context, when the call was made that is under way
  std::atomic<const Trainer*> at_step = nullptr;  // a rank's, whose step is under way: its cancels end waits too
  std::unique_ptr<Communicator> ranks;
  WorkQueue queue;  // of what is pending; it ends first
};

/// A step, a generation and a copy of a weight each hold the model's lease: none sees the weights half written.
struct ModelObject final : Object {
  std::shared_ptr<Model> model;
  std::weak_ptr<CommunicatorObject> group;  // whose ranks have it in pieces, if any; not kept: its port may be another's then
  ReadReport read;                          // of the last st_model_read, and its texts as the host sees them
  std::vector<const char*> missing, unexpected;
};

struct TrainerObject final : Object, Trimmable {
  void trim() override;

  std::shared_ptr<ModelObject> model;
  std::shared_ptr<CommunicatorObject> group;  // of which it is a rank; null: of none
  std::unique_ptr<Trainer> trainer;
  std::unique_ptr<MetricsLog> log;
  std::optional<StepReport> to_log;  // the step whose call has not returned yet
  bool is_logged = false;            // that step
  std::exception_ptr log_error;      // of its line, or of one before it
  std::vector<HostView> views;       // of the step's batch; kept so that a step allocates nothing
  StepHistory history;               // for the report page
  std::vector<ValidationPoint> evaluations;
  std::pair<int64_t, double> average_loss = {-1, 0};  // of the last evaluation of the average, after so many steps
  std::atomic<bool> stop{false};
  double started = 0;
  std::vector<std::vector<int64_t>> output_dims;  // of what forward gave out, in order
  std::vector<st_named_view> outputs;
  std::vector<st_metric> metrics;  // of the last evaluation
  std::vector<std::string> metric_names;
  BackgroundSaves saves;
};

struct PredictorObject final : Object, Trimmable {
  void trim() override { predictor->trim(); }

  std::shared_ptr<ModelObject> model;
  std::shared_ptr<CommunicatorObject> group;  // of a model in pieces: by whose ranks it gathers them
  std::unique_ptr<Predictor> predictor;
};

struct TensorObject final : Object {
  StridedLayout layout;
  void* data = nullptr;
  int64_t bytes = 0;
  std::shared_ptr<void> owner;  // of the memory; shared with each DLPack made of it
};

struct PendingObject final : Object {
  std::shared_ptr<Pending> work;
};

struct GemmObject final : Object, std::enable_shared_from_this<GemmObject> {
  std::shared_ptr<Context> context;
  std::unique_ptr<GemmPlan> plan;
  std::optional<UsualOperands> usual;
};

struct PackedObject final : Object {
  std::shared_ptr<GemmObject> gemm;  // that packs
  std::unique_ptr<PackedMatrix> b;
};

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
  StateViews state;                 // of what state_views gave out
};

struct AccumulatorObject final : Object {
  std::shared_ptr<Context> context;
  std::unique_ptr<Accumulator> accumulator;
  std::vector<Accumulator::StateArray> arrays;  // of what state_views gives out
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
  StateViews state;                 // of what gather_state gave out
};

struct DistributedSamplerObject final : Object {
  explicit DistributedSamplerObject(const SamplerOptions& options) : sampler(options) {}
  DistributedSampler sampler;
};

template <class Handle>
struct HandleTraits;

#define ST_HANDLE(type, kind_name, object)        \
  template <>                                     \
  struct HandleTraits<type> {                     \
    using Object = object;                        \
    static constexpr Kind kind = Kind::kind_name; \
  };
ST_HANDLE(st_context, context, ContextObject)
ST_HANDLE(st_graph, graph, GraphObject)
ST_HANDLE(st_model, model, ModelObject)
ST_HANDLE(st_data, data, DataObject)
ST_HANDLE(st_recipe, recipe, RecipeObject)
ST_HANDLE(st_trainer, trainer, TrainerObject)
ST_HANDLE(st_predictor, predictor, PredictorObject)
ST_HANDLE(st_tensor, tensor, TensorObject)
ST_HANDLE(st_pending, pending, PendingObject)
ST_HANDLE(st_gemm, gemm, GemmObject)
ST_HANDLE(st_packed, packed, PackedObject)
ST_HANDLE(st_schedule, schedule, ScheduleObject)
ST_HANDLE(st_loss_scaler, loss_scaler, LossScalerObject)
ST_HANDLE(st_optimizer, optimizer, OptimizerObject)
ST_HANDLE(st_accumulator, accumulator, AccumulatorObject)
ST_HANDLE(st_checkpoint, checkpoint, CheckpointObject)
ST_HANDLE(st_communicator, communicator, CommunicatorObject)
ST_HANDLE(st_distributed_sampler, distributed_sampler, DistributedSamplerObject)
ST_HANDLE(st_data_parallel, data_parallel, DataParallelObject)
ST_HANDLE(st_sharded_optimizer, sharded_optimizer, ShardedOptimizerObject)
#undef ST_HANDLE

/// The object behind a handle, for calls that may come from any thread at any time.
template <class Handle>
auto peek(const Handle* handle) {
  using Traits = HandleTraits<Handle>;
  return std::static_pointer_cast<typename Traits::Object>(look_up(Traits::kind, handle));
}

/// The object behind a handle, for this call alone.
template <class Handle>
auto find(const Handle* handle) {
  using Traits = HandleTraits<Handle>;
  return Lease<typename Traits::Object>(Traits::kind, handle);
}

/// Hands a new object out.
template <class Handle, class T>
void hand_out(Handle** handle, std::shared_ptr<T> object) {
  static_assert(std::is_same_v<T, typename HandleTraits<Handle>::Object>);
  Handle*& out = given(handle, "the out pointer for the new handle");  // before add(), or the handle would live and be lost
  out = static_cast<Handle*>(add(HandleTraits<Handle>::kind, std::move(object)));
}

/// For calls that signal handlers may make: act(object) is a store or two. A failure is its status alone.
template <class Handle, class Act>
st_status signal(const Handle* handle, const Act& act) noexcept {
  using Traits = HandleTraits<Handle>;
  const Pin pin(Traits::kind, handle);
  if (pin.object() != nullptr) act(static_cast<typename Traits::Object&>(*pin.object()));
  return static_cast<st_status>(pin.code());
}

/// Takes back what a call has handed out before it failed.
template <class Handle>
void take_back(const Handle* handle) {
  remove(HandleTraits<Handle>::kind, handle);
}

/// All that an st_*_destroy does: `return drop(handle)`, and nothing around it (library_hold.h).
template <class Handle>
st_status drop(const Handle* handle, const char* call = __builtin_FUNCTION()) {
  return leave(destroyed(HandleTraits<Handle>::kind, handle, call));
}

}  // namespace st::capi
