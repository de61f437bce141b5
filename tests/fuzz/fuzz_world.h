// The state of the fuzzer of API sequences: handles it created, memory that the library borrows, and hostile values to choose from.
#pragma once

#include <scaletrain/scaletrain.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace st::fuzz {

using Calls = std::vector<std::function<void()>>;

/// The input: each decision takes one byte; past its end all decisions are 0.
class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  uint8_t next() { return at_ < size_ ? data_[at_++] : uint8_t{0}; }
  bool empty() const { return at_ >= size_; }
  /// Makes one of the calls; n choices are equally likely, and the last call gets all those beyond the list.
  void choose(int n, const Calls& calls) { calls[std::min<size_t>(next() % n, calls.size() - 1)](); }
  /// true about once in n.
  bool rarely(int n = 8) { return next() % n == 1; }
  template <class Array>
  const typename Array::value_type& pick(const Array& from) {
    return from[next() % from.size()];
  }

 private:
  const uint8_t* data_;
  size_t size_, at_ = 0;
};

/// Reports a finding and ends the process like a crash.
[[noreturn]] void finding(const char* what, const std::string& detail);

/// Handles of one kind from the library. Destroyed ones are kept and reused as stale handles.
template <class T>
struct Shelf {
  std::vector<T*> live, stale;
  T* made = nullptr;  // set by the current call
};

class World {
 public:
  World(const uint8_t* data, size_t size);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// A handle of this kind: usually a live one, else NULL, stale, of another kind, or garbage.
  template <class T>
  T* handle(const Shelf<T>& shelf) {
    switch (bytes.next() % 32) {
      case 0:
        return nullptr;
      case 1:
        return shelf.stale.empty() ? nullptr : bytes.pick(shelf.stale);
      case 2:
        return static_cast<T*>(foreign());
      case 3:
        return reinterpret_cast<T*>(static_cast<uintptr_t>(bytes.next()) * 0x0101010101ULL);
      default:
        return shelf.live.empty() ? nullptr : bytes.pick(shelf.live);
    }
  }
  /// Checks the result of a call: a valid status, a message if it failed, never ST_INTERNAL.
  bool ok(const char* call, st_status status);
  template <class T>
  void keep(const char* call, Shelf<T>& shelf, st_status status, T* made) {
    if (!ok(call, status)) return;
    if (made == nullptr) finding(call, "ST_OK without a handle");
    shelf.live.push_back(made);
  }
  template <class T>
  void destroy(const char* call, Shelf<T>& shelf, st_status (*end)(T*), T* chosen) {
    if (!ok(call, end(chosen))) return;
    for (size_t i = 0; i < shelf.live.size(); ++i) {
      if (shelf.live[i] != chosen) continue;
      shelf.live.erase(shelf.live.begin() + static_cast<std::ptrdiff_t>(i));
      shelf.stale.push_back(chosen);
      return;
    }
    if (chosen != nullptr) finding(call, "ST_OK for a handle that is not live");
  }

  /// visit(shelf, name of the destroyer, destroyer) for each kind of handle that can be destroyed alone.
  template <class Visit>
  void each_shelf(const Visit& visit) {
    visit(contexts, "st_context_destroy", st_context_destroy);
    visit(graphs, "st_graph_destroy", st_graph_destroy);
    visit(models, "st_model_destroy", st_model_destroy);
    visit(data, "st_data_destroy", st_data_destroy);
    visit(recipes, "st_recipe_destroy", st_recipe_destroy);
    visit(trainers, "st_trainer_destroy", st_trainer_destroy);
    visit(predictors, "st_predictor_destroy", st_predictor_destroy);
    visit(gemms, "st_gemm_plan_destroy", st_gemm_plan_destroy);
    visit(packed, "st_packed_destroy", st_packed_destroy);
    visit(schedules, "st_schedule_destroy", st_schedule_destroy);
    visit(loss_scalers, "st_loss_scaler_destroy", st_loss_scaler_destroy);
    visit(optimizers, "st_optimizer_destroy", st_optimizer_destroy);
    visit(accumulators, "st_accumulator_destroy", st_accumulator_destroy);
    visit(checkpoints, "st_checkpoint_destroy", st_checkpoint_destroy);
    visit(communicators, "st_communicator_destroy", st_communicator_destroy);
    visit(samplers, "st_distributed_sampler_destroy", st_distributed_sampler_destroy);
    visit(data_parallels, "st_data_parallel_destroy", st_data_parallel_destroy);
    visit(pipelines, "st_pipeline_destroy", st_pipeline_destroy);
    visit(plans, "st_plan_destroy", st_plan_destroy);
    visit(sharded_optimizers, "st_sharded_optimizer_destroy", st_sharded_optimizer_destroy);
    visit(tensors, "st_tensor_destroy", st_tensor_destroy);
  }

  const char* name();
  int64_t number();
  /// A view whose memory exists in the stated size; everything else may be invalid.
  st_view view();
  /// Rows of floats or tokens for the models here, occasionally fewer than a step takes, with gaps, or with one error.
  std::vector<st_named_view> batch(bool tokens);
  /// Valid floats of this shape.
  st_view view_of(std::initializer_list<int64_t> shape);
  std::vector<st_named_view> views(const char* name);
  /// Memory that exists as long as the world.
  void* memory(size_t size);
  const int64_t* dims(std::initializer_list<int64_t> values);
  const int64_t* dims();

  Bytes bytes;
  Shelf<st_context> contexts;
  Shelf<st_graph> graphs;
  Shelf<st_model> models;
  Shelf<st_data> data;
  Shelf<st_recipe> recipes;
  Shelf<st_trainer> trainers;
  Shelf<st_predictor> predictors;
  Shelf<st_tensor> tensors;
  Shelf<st_pending> pendings;
  Shelf<st_gemm> gemms;
  Shelf<st_packed> packed;
  Shelf<st_schedule> schedules;
  Shelf<st_loss_scaler> loss_scalers;
  Shelf<st_optimizer> optimizers;
  Shelf<st_accumulator> accumulators;
  Shelf<st_checkpoint> checkpoints;
  Shelf<st_communicator> communicators;
  Shelf<st_distributed_sampler> samplers;
  Shelf<st_data_parallel> data_parallels;
  Shelf<st_pipeline> pipelines;
  Shelf<st_plan> plans;
  Shelf<st_sharded_optimizer> sharded_optimizers;
  std::vector<st_value> values;
  std::vector<uint8_t> stream;  // output of the last st_model_write
  int depth = 0;                // nesting of calls from callbacks
  std::atomic<int64_t> lent{0}, released{0};

  /// Folders of text files to read and of files to write: separate, since a file in use must not be truncated.
  static const std::string& folder();

 private:
  void* foreign();
  const int64_t* batch_strides(int64_t rows, int64_t columns);
  std::vector<std::unique_ptr<uint8_t[]>> memory_;
};

}  // namespace st::fuzz
