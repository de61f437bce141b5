// A program: the input and output of every pass, verified after the last pass of a plan. It has sections over shared slots; the plan orders
// the sections over micro-batches.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "ir/parameter_piece.h"

namespace st {

/// The purpose of a slot. It decides which arena holds the slot, who writes it and whether a checkpoint keeps it.
enum class Role : int32_t {
  parameter,  // written by update sections only
  gradient,   // of a parameter or of one use of it; lives from the first micro-batch to the update
  optimizer,  // moments; initially zero
  stash,      // an activation kept from a forward section for the backward of the same micro-batch
  input,      // bound to the host's memory for each micro-batch
  control,    // a few numbers that the host writes before a step (learning rate, step counts)
  report,     // a few numbers that the host reads after a step (loss, norm)
  output,     // a forward output that the host reads after the run
  packed,     // a parameter in the form that a backend's products read; rewritten in each step's first micro-batch
  working,    // a 16-bit copy of a parameter for products; rewritten from the parameter, its master, in the first micro-batch
  gathered,   // a sharded parameter or working copy, gathered for one unit of a section (gather_units)
};
std::string_view name_of(Role role);

enum class Init : int32_t { zeros, ones, normal, uniform, xavier, kaiming, values };

/// How a parameter's initial values are made, from (seed, name, element) alone.
struct Initializer {
  Init kind = Init::zeros;
  double scale = 1;           // normal: standard deviation; uniform: half-width around 0; xavier, kaiming: gain
  std::vector<float> values;  // for kind `values`: all elements, row-major
  bool operator==(const Initializer&) const = default;
};

struct Slot {  // memory that lives across micro-batches or steps
  std::string name;
  Type type;  // of the whole tensor; its layout says what of it a rank has: own_type(), own_begin() (ir/cuts.h)
  Role role = Role::parameter;
  Initializer init;           // parameters
  SlotId of = -1;             // gradient, optimizer, packed, working, gathered: the parameter's slot
  bool trainable = true;      // parameters
  bool borrowed = false;      // a parameter, gradient or working copy borrowed from the host: bound before each run, like inputs
  AxisLayout sums = {};       // parameters, data axis: flat: each rank sums the gradient of its range over the ranks
  AxisLayout update = {};     // and the ranges that each rank updates: `sums`, or all where the sums are gathered
  ParameterPiece piece = {};  // parameters: what of the model's parameter this is, if `type` is that of a piece (tensor_parallel); the same
                              // for an optimizer's state that is not cut like its parameter
};

/// Finds slots by name. Follows Program::add_slot(), rename() and remove_slots(); where slots were changed in another way, it looks through
/// them all.
class SlotNames {
 public:
  SlotId find(const std::vector<Slot>& slots, std::string_view name) const;  // -1: none
  void add(const std::vector<Slot>& slots, SlotId slot);                     // the last slot, or one with a new name
  void read_again(const std::vector<Slot>& slots);

 private:
  size_t place_of(std::string_view name) const { return std::hash<std::string_view>()(name) & (table_.size() - 1); }
  void insert(const std::vector<Slot>& slots, SlotId slot);

  std::vector<SlotId> table_;  // open addressing, a power of two; -1: free
  size_t entries_ = 0;         // in the table, old names of renamed slots too
  size_t known_ = 0;           // slots
};

/// A scope of the model: "block.3". A boundary (block, attention, mlp) stops fusion and may be a unit of recompute, gather and cut; other
/// scopes, such as a single layer's, only name.
struct Region {
  std::string name;  // full: "block.3.attention"
  RegionId parent = -1;
  bool boundary = true;
};

enum class Phase : int32_t { forward, backward, backward_input, backward_weight, update };
std::string_view name_of(Phase phase);

struct Section {
  Graph graph;
  Phase phase = Phase::forward;
  int32_t stage = 0, chunk = 0;
};

struct Output {
  std::string name;
  Value value;       // in the forward section of the last stage
  Value count = {};  // for a metric made of losses: value is a sum over this count; evaluation divides total sum by total count
};

/// The numbers of a step that the host writes before it (control) or reads after it (report). -1: the program has no such slot.
struct StepSlotIds {
  SlotId counters = -1;          // i64[2]: step attempts, first row of the micro-batch (Builder::dropout)
  SlotId rates = -1;             // f64[2]: learning rate, number of this update from 1 (update)
  SlotId loss_scale = -1;        // f64: multiplies every seed of backward (add_loss_scale)
  SlotId own_loss_seed = -1;     // f64: seeds the loss in the graph, 0 where the host has the loss (seed_outputs)
  SlotId gradient_unit = -1;     // f64: clip divides by it in place of the loss's count
  SlotId loss_sum = -1;          // f64 (scale_loss)
  SlotId loss_count = -1;        // f64 (scale_loss)
  SlotId grad_norm = -1;         // f64 (clip)
  SlotId skipped = -1;           // bool: a gradient is not finite, so no optimizer runs (clip)
  SlotId first_norm = -1;        // f64: norm of the first micro-batch's gradient on the first rank (first_norm)
  SlotId first_loss_count = -1;  // f64: the count of that micro-batch's loss (first_norm)

  auto all() {
    return std::array{&counters,   &rates,     &loss_scale, &own_loss_seed, &gradient_unit,   &loss_sum,
                      &loss_count, &grad_norm, &skipped,    &first_norm,    &first_loss_count};
  }
};

/// A one-way link between two stages of a pipeline; its messages arrive in the order in which they are sent.
struct StageLink {
  enum class Carries : int32_t { activations, gradients, weights, uses };  // uses: gradients of a tied weight's uses
  Carries carries = Carries::activations;
  int32_t from = 0, to = 0;            // stages
  int32_t from_part = 0, to_part = 0;  // of the model, for activations and gradients
  int32_t under_way = 1;               // messages that may be sent before the first of them has arrived (plan/pipeline_schedule.h)
  auto operator<=>(const StageLink&) const = default;
};

struct Program {
  std::vector<Section> sections;
  std::vector<Slot> slots;
  SlotNames names;  // of the slots
  std::vector<Region> regions = {Region{}};
  std::vector<Output> outputs;
  Value loss_sum, loss_count;  // in the forward section; a step's loss is total sum over total count (ir/counted_loss.h)
  double loss_seed = 1;        // the seed of backward, a power of two (scale_loss)
  StepSlotIds step;
  Mesh mesh;
  int32_t rank = 0;                    // this program's rank along the data axis,
  int32_t tensor_rank = 0;             // along the tensor axis,
  int32_t stage = 0;                   // and along the stage axis
  std::vector<StageLink> links;        // of all stages, alike on all of them (pipeline_cut); a message names its link by the index
  std::vector<bool> weights_of_model;  // of a stage's program: weights_of_products() of the whole model
  std::vector<bool> copied_of_model;   // of a stage's program: copied_weights() of the whole model
  std::vector<RegionId> part_starts;   // of a stage's program: the scopes with which the model's parts 1 and up begin
  int64_t batch = 0;                   // the value bound to kBatch; 0: still symbolic

  /// This program's rank among all of the mesh.
  int32_t mesh_rank() const { return rank_at(mesh, {.data = rank, .tensor = tensor_rank, .stage = stage}); }

  /// The section of a phase in a program of one stage; null: none. Throws internal if several stages or chunks have one: who works on one
  /// section must say which, or run on each stage's program.
  const Section* find(Phase phase) const;
  Section* find(Phase phase) { return const_cast<Section*>(std::as_const(*this).find(phase)); }
  const Section* find(Phase phase, int32_t of_stage, int32_t chunk) const;
  /// The forward section of the model's last part here, in which outputs and the loss are; null: there is no forward section.
  const Section* last_forward() const;
  Slot& slot(SlotId id) { return slots[static_cast<size_t>(id)]; }
  const Slot& slot(SlotId id) const { return slots[static_cast<size_t>(id)]; }
  SlotId slot_named(std::string_view name) const { return names.find(slots, name); }  // -1: none
  SlotId parameter_of(const Node& load) const;  // the parameter loaded, directly or as a working or gathered copy; -1: none
  SlotId add_slot(Slot slot);
  void rename(SlotId slot, std::string name);
  RegionId boundary_of(RegionId region) const;  // the nearest enclosing boundary scope
};

/// Whether `copy` is the working copy of `parameter`.
bool is_working_copy(const Program& program, SlotId copy, SlotId parameter);

/// Replaces the symbolic batch in every shape and attribute and infers all types again. Throws invalid_argument with the op that fails.
Program bind(const Program& program, int64_t batch);

}  // namespace st
