// One live handle of each kind and all arguments that calls on it need, for tables of calls that run in every state.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint_folder.h"
#include "small_run.h"

namespace st::test {

/// The names of st_live_handles and of messages.
constexpr std::array<std::string_view, 22> kKindNames = {"context",       "graph",
                                                         "model",         "data",
                                                         "recipe",        "trainer",
                                                         "predictor",     "tensor",
                                                         "pending",       "gemm",
                                                         "packed",        "schedule",
                                                         "loss_scaler",   "optimizer",
                                                         "accumulator",   "checkpoint",
                                                         "communicator",  "distributed_sampler",
                                                         "data_parallel", "sharded_optimizer",
                                                         "pipeline",      "plan"};

/// Of one chunk whose functions do nothing.
st_status make_pipeline(st_communicator* communicator, st_pipeline** pipeline);

/// Half of kSmallGpt, since hundreds are made.
constexpr const char* kAllKindsGpt = R"({"layers": 1, "width": 16, "heads": 2, "context": 8})";
constexpr const char* kPlannedMachine = R"({"machine": "a100-80g", "simulate": true})";

/// Converts to a handle of whatever kind a call takes; may be invalid.
class AnyHandle {
 public:
  explicit AnyHandle(void* bits) : bits_(bits) {}
  template <class Handle>
  operator Handle*() const {
    return static_cast<Handle*>(bits_);
  }

 private:
  void* bits_;
};

/// The handles of an AllKinds, in the order of kKindNames.
using EachHandle = std::array<void*, kKindNames.size()>;

/// The arrays that one of two ranks exchanges.
struct RankArrays {
  explicit RankArrays(int32_t number);
  RankArrays(const RankArrays&) = delete;
  RankArrays& operator=(const RankArrays&) = delete;

  int32_t rank;
  std::vector<float> values = std::vector<float>(40);
  int64_t dims[2] = {16, 8};
  st_view whole, other, share;
};

struct AllKinds {
  /// The trainer has done one step and opened a log.
  explicit AllKinds(const st_context_options* options = nullptr);
  ~AllKinds();
  AllKinds(const AllKinds&) = delete;
  AllKinds& operator=(const AllKinds&) = delete;

  EachHandle handles() const;
  AnyHandle of(std::string_view kind) const;
  /// A path under the test's own folder; the file does not exist until a call writes it.
  std::string path(const char* name) const { return source + "." + name; }
  /// A digest of everything that a call could change. Not while a step is running.
  std::string state() const;
  /// Says of every view that calls pass, until the next call of this, that it is in the memory of `of`.
  void place_views(int32_t of);
  /// Releases an export as another library would.
  static void give_back(DLManagedTensor* taken);

  std::string source = source_file();
  SmallRun run;
  HeldModel other;
  HeldGraph graph;
  HeldPredictor predictor;
  HeldTensor tensor;
  HeldPending pending;
  HeldGemm gemm;  // 4x4 by 4x4
  HeldPacked packed;
  HeldSchedule schedule;
  HeldLossScaler loss_scaler;           // between steps
  HeldOptimizer optimizer;              // of host_weight
  HeldAccumulator accumulator;          // of host_gradient, two micro-batches per step
  CheckpointFolder folder;              // with one checkpoint of the trainer
  HeldCheckpoint checkpoint;            // of that folder
  HeldCommunicator communicator, peer;  // the two ranks of a group
  RankArrays arrays[2] = {RankArrays(0), RankArrays(1)};
  HeldSampler sampler;             // of eight rows
  HeldCommunicator alone;          // a group of one
  HeldDataParallel data_parallel;  // of `alone`, and host_gradient
  HeldShardedOptimizer sharded;    // of `alone`, stage 2, and sharded_weight
  HeldPipeline pipeline;           // of `alone`, one stage that computes nothing
  HeldModel planned;               // planning takes most of the time in which an AllKinds is made, so this is the least there is to plan
  HeldPlan plan;                   // of `planned`, on a machine by data sheet

  // Arguments of calls.
  st_value x = 0, tokens = 0, sequence = 0, loss = 0;
  TokenBatch batch{3, 5};
  std::vector<float> beta;
  int64_t beta_dims[1] = {16};
  int64_t square_dims[2] = {4, 4};
  std::vector<float> product = std::vector<float>(16);
  st_view square, product_view;
  std::vector<float> host_weight = std::vector<float>(16), other_weight = host_weight, host_gradient = host_weight,
                     sharded_weight = host_weight;
  std::vector<float> overwritten = std::vector<float>(16);
  st_view view, room;  // room: for results
  st_named_view named;
  int32_t device = 0;   // of views that calls make by themselves
  std::string weights;  // the model's stream
  size_t read = 0;      // bytes of it read by the current call
  DLManagedTensor* managed = nullptr;
  int64_t callbacks = 0;

  // Results of calls.
  HeldContext new_context;
  HeldGraph new_graph;
  HeldModel new_model;
  HeldData new_data, more_data;
  HeldTrainer new_trainer;
  HeldPredictor new_predictor;
  HeldTensor new_tensor;
  HeldPending new_pending;
  HeldGemm new_gemm;
  HeldPacked new_packed;
  HeldSchedule new_schedule;
  HeldLossScaler new_loss_scaler;
  HeldOptimizer new_optimizer;
  HeldAccumulator new_accumulator;
  CheckpointFolder new_folder;
  HeldCheckpoint new_checkpoint;
  HeldCommunicator new_communicator, more_communicator;
  HeldSampler new_sampler;
  HeldDataParallel new_data_parallel;
  HeldShardedOptimizer new_sharded;
  HeldPipeline new_pipeline;
  HeldPlan new_plan;
  st_view new_view{};
  st_value value = 0;
  const char* text = nullptr;
  int64_t number = 0;
  double real = 0;
  int32_t done = 0;
  const st_named_view* outputs = nullptr;

 private:
  static const std::string& source_file();
  void make_graph();
  void make_gemm();
  void make_checkpoint();
  void make_communicators();
};

}  // namespace st::test
