// The optimizers by themselves: the trainer's clip and update over a host's own parameters and gradients, where they lie.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "exec/exchange_queue.h"
#include "exec/executor.h"
#include "train/context.h"
#include "train/host_view.h"
#include "train/recipe.h"
#include "train/step_slots.h"

namespace st {

/// The recipe's keys that it has: lr, optimizer and what that one takes, groups, clip, clip_value, threads.
const std::vector<std::string>& optimizer_keys();

/// Whose pieces of the parameters an optimizer updates (zero_shard), and where it reads their gradients.
struct HostShards {
  Communicator* ranks = nullptr;  // borrowed; null: all of them
  bool own_sums = false;          // of sums of its own, f32 (of f64: f64), in place of the host's arrays
};

class HostOptimizer {
 public:
  /// json: an object of optimizer_keys(), "": all defaults; clip is 0 unless given. `parameters` are named, f32 or f64, row-major without
  /// gaps; their memory is borrowed for life. Throws invalid_argument: names that are there twice, types, gaps, shared memory, keys, groups
  /// that fit nothing, nothing to train; unsupported for f64 by an optimizer that has none; out_of_memory with the need.
  HostOptimizer(std::shared_ptr<Context> context, std::string_view json, std::span<const HostView> parameters, HostShards shards = {});
  HostOptimizer(const HostOptimizer&) = delete;
  HostOptimizer& operator=(const HostOptimizer&) = delete;

  static constexpr int64_t kMostUpdates = int64_t{1} << 53;  // a step's number is a double, too

  struct Report {
    bool skipped = false;  // a gradient is not finite: nothing changed
    int64_t step = 0;      // updates so far
    double lr = 0;
    double norm = 0;  // of all gradients together, before clipping
  };
  /// One update by size() gradients in the order of the parameters, those of frozen ones not looked at. Of an f32 parameter they are f32,
  /// bf16 or f16, of an f64 one f64; row-major without gaps. Plans anew when types are others than in the last step; else allocates
  /// nothing. Throws invalid_argument that names the gradient, before anything is written.
  /// The gradients are `scale` times the true ones, which norm, clip and update go by: a finite number above 0.
  Report step(std::span<const HostView> gradients, double scale = 1);
  /// The same in two halves, for who exchanges gradients in between: all that step() throws for what the host gave, and the update itself,
  /// by the gradients that were taken last; of own sums `gradients` may be empty, and are else looked at alone.
  void take(std::span<const HostView> gradients);
  Report update(double scale);
  /// What step() throws for one gradient; nothing for a frozen parameter's.
  void check_gradient(size_t parameter, const HostView& gradient) const;

  /// Copies of the parameters in 16 bits, rounded to nearest even: written now, and by each step as it updates its parameter. bf16 or f16,
  /// of f32 parameters, in their order and of their shapes, row-major without gaps; data null: none of that one. Their memory is borrowed
  /// until the next call or for life; empty: no more copies. Throws invalid_argument that names the copy, before anything is written.
  void keep_copies(std::span<const HostView> copies);

  /// lr, from the next step on. Throws unsupported for what the plan was made from.
  void set(std::string_view key, std::string_view json);

  /// "step", i64: updates so far; then "<state>.<parameter>", as ir/optimizer_state.h names them. The optimizer's own memory, which may be
  /// written between steps.
  std::span<const HostView> state() const { return state_; }

  Workers& workers() const { return *workers_; }
  const Recipe& recipe() const { return recipe_; }
  int64_t updates() const { return updates_; }
  std::span<const HostView> parameters() const { return parameters_; }
  /// Data null: none of that one.
  std::span<const HostView> copies() const { return copies_; }

  // In shards.

  /// A state of a parameter, of all ranks' pieces together.
  struct WholeState {
    std::string name;  // "moment1.w"
    DType dtype = DType::f32;
    Shape shape;
    Ints cuts;            // the element that each rank's piece begins with, and the end
    void* own = nullptr;  // this rank's piece, if it has elements
  };
  std::vector<WholeState> whole_states() const;
  /// The element that each rank's piece of a parameter begins with, and the end; empty: it is not trained.
  const Ints& cuts(size_t parameter) const { return cuts_[parameter]; }
  /// Own sums: this rank's piece of a gradient.
  std::byte* own_sums(size_t parameter) const { return own_sums_.data() + own_sums_at_[parameter]; }
  /// Of who loads the state: updates so far.
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
  /// A slot in the host's memory, or this rank's piece of it.
  struct Bound {
    SlotId slot = -1;    // -1: it has none
    int64_t offset = 0;  // bytes
  };
  struct ParameterBounds {
    Bound parameter, gradient, copy;
  };

  void take_parameters(std::span<const HostView> parameters);
  std::vector<HostView> checked_copies(std::span<const HostView> copies) const;
  void check_gradients(std::span<const HostView> gradients);
  bool has_types_of(std::span<const HostView> gradients) const;
  void plan(std::vector<ParameterSlots> slots);
  OptimizerChoice choice_of(size_t parameter) const;
  void cut(Program& program, std::span<const ParameterSlots> slots);
  void make_own_sums();
  void find_bounds();
  void bind(const Bound& bound, void* data);
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
  std::vector<ParameterBounds> bounds_;
  std::vector<Ints> cuts_;  // by parameter; of shards alone
  std::unique_ptr<Workers> workers_;
  Storage storage_;
  std::unique_ptr<ExchangeQueue> exchanges_;  // of shards
  Memory own_sums_;
  std::vector<int64_t> own_sums_at_;  // by parameter
  std::unique_ptr<Executor> executor_;
  StepSlots step_;
  std::vector<HostView> state_, together_;  // together: parameters, copies and gradients of a step, by address
  int64_t updates_ = 0;
};

}  // namespace st
