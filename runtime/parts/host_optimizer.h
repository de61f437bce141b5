// The stand-alone optimizers: the trainer's clip and update, in place on a host's own parameters and gradients.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/host_view.h"
#include "comm/communicator.h"
#include "exec/exchange_queue.h"
#include "exec/executor.h"
#include "exec/step_slots.h"
#include "ir/cuts.h"
#include "parts/context.h"
#include "recipe/recipe.h"

namespace st {

/// The recipe keys that it accepts: lr, optimizer and that optimizer's keys, groups, clip, clip_value, threads.
const std::vector<std::string>& optimizer_keys();

/// The shards of the parameters that an optimizer updates (zero_shard), and where it reads their gradients.
struct HostShards {
  Communicator* ranks = nullptr;  // borrowed; updates this rank's shards; null: updates all parameters
  bool own_sums = false;          // reads gradients from its own sums, f32 (f64 for f64), instead of the host's arrays
};

class HostOptimizer {
 public:
  /// json: an object of optimizer_keys(); "": all defaults; clip is 0 unless given. `parameters` are named, f32 or f64, row-major without
  /// gaps; their memory is borrowed for the optimizer's life.
  /// Throws invalid_argument: duplicate names, types, gaps, shared memory, keys, groups that match nothing, nothing to train; unsupported:
  /// f64 with an optimizer that has no f64 kernel; out_of_memory with the bytes needed.
  HostOptimizer(std::shared_ptr<Context> context, std::string_view json, std::span<const HostView> parameters, HostShards shards = {});
  HostOptimizer(const HostOptimizer&) = delete;
  HostOptimizer& operator=(const HostOptimizer&) = delete;

  static constexpr int64_t kMostUpdates = int64_t{1} << 53;  // a step's number is also stored as a double

  struct Report {
    bool skipped = false;  // a gradient was not finite: nothing changed
    int64_t step = 0;      // updates so far
    double lr = 0;
    double norm = 0;  // of all gradients together, before clipping
  };
  /// One update by size() gradients in the order of the parameters; those of frozen parameters are ignored.
  /// - types: f32, bf16 or f16 for an f32 parameter, f64 for an f64 one; row-major without gaps
  /// - `scale`: finite, above 0; the gradients are `scale` times the true ones, from which norm, clip and update are computed
  /// Replans if a type differs from the last step's; else allocates nothing. Throws invalid_argument that names the gradient, before
  /// anything is written.
  Report step(std::span<const HostView> gradients, double scale = 1);
  /// step() in two halves, for a caller that reduces gradients in between: take() throws all argument errors of step(); update() updates by
  /// the gradients taken last. With own_sums `gradients` may be empty, and are only checked otherwise.
  void take(std::span<const HostView> gradients);
  Report update(double scale);
  /// Throws like step() for one gradient; accepts any for a frozen parameter.
  void check_gradient(size_t parameter, const HostView& gradient) const;

  /// Registers 16-bit copies of the parameters, rounded to nearest even: written now, and by each step as it updates the parameter.
  /// - bf16 or f16, of f32 parameters, in the parameters' order and shapes, row-major without gaps; data null: no copy of that parameter
  /// - memory is borrowed until the next keep_copies() or the optimizer's end; empty: no copies from now on
  /// Throws invalid_argument that names the copy, before anything is written.
  void keep_copies(std::span<const HostView> copies);

  /// Sets lr from the next step on. Throws unsupported for keys that the plan depends on.
  void set(std::string_view key, std::string_view json);

  /// "step", i64: updates so far; then "<state>.<parameter>" with the names of ir/optimizer_state.h. Views of the optimizer's own memory;
  /// the host may write them between steps.
  std::span<const HostView> state() const { return state_; }

  Workers& workers() const { return *workers_; }
  const Recipe& recipe() const { return recipe_; }
  int64_t updates() const { return updates_; }
  std::span<const HostView> parameters() const { return parameters_; }
  /// By parameter; data null: it has no copy.
  std::span<const HostView> copies() const { return copies_; }

  // Sharded (HostShards::ranks).

  /// A state tensor of a parameter, over the shards of all ranks.
  struct WholeState {
    std::string name;  // "moment1.w"
    DType dtype = DType::f32;
    Shape shape;
    Ints cuts;            // first element of each rank's shard, then the end
    void* own = nullptr;  // this rank's shard, if it is not empty
  };
  std::vector<WholeState> whole_states();
  /// The ranges of the ranks. The parameter must be trained.
  const Cuts& cuts(size_t parameter) const { return cuts_[parameter]; }
  /// With own_sums: this rank's shard of a gradient.
  std::byte* own_sums(size_t parameter) const { return own_sums_.data() + own_sums_at_[parameter]; }
  /// Number of updates so far, for a caller that has loaded the state.
  void set_updates(int64_t updates) { updates_ = updates; }

  size_t size() const { return parameters_.size(); }
  bool is_trained(size_t parameter) const { return slots_[parameter].gradient >= 0; }
  /// "gradient of w"
  const std::string& gradient_name(size_t parameter) const { return gradient_names_[parameter]; }
  /// "copy of w"
  const std::string& copy_name(size_t parameter) const { return copy_names_[parameter]; }

 private:
  struct ParameterSlots {
    SlotId parameter = -1, gradient = -1, copy = -1;
    DType gradient_type = DType::f32;
    std::optional<DType> copy_type{};
  };

  void take_parameters(std::span<const HostView> parameters);
  std::vector<HostView> checked_copies(std::span<const HostView> copies) const;
  void check_gradients(std::span<const HostView> gradients);
  bool has_types_of(std::span<const HostView> gradients) const;
  void plan(std::vector<ParameterSlots> slots);
  OptimizerChoice choice_of(size_t parameter);
  void cut(Program& program, std::span<const ParameterSlots> slots);
  void make_own_sums();
  void bind(SlotId slot, void* data);
  void bind_lasting();
  void write_copy(size_t parameter) const;
  void list_state();
  const std::string& name_of(const Slot& parameter) const;

  std::shared_ptr<Context> context_;
  Recipe recipe_;
  NamedOptimizer optimizer_;
  HostShards shards_;
  std::vector<std::string> names_, gradient_names_, copy_names_, state_names_;
  std::vector<HostView> parameters_, copies_;
  std::vector<ParameterSlots> slots_;
  std::vector<Cuts> cuts_;  // by parameter; only if sharded
  std::unique_ptr<Workers> workers_;
  Storage storage_;
  std::unique_ptr<ExchangeQueue> exchanges_;  // only if sharded
  Memory own_sums_;
  std::vector<int64_t> own_sums_at_;  // by parameter
  std::unique_ptr<Executor> executor_;
  StepSlots step_;
  std::vector<HostView> state_, together_;  // together: parameters, copies and gradients of a step, by address
  int64_t updates_ = 0;
};

}  // namespace st
