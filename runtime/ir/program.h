// A program: what every pass takes, and leaves verified. Sections over shared slots; the plan lays sections x micro-batches out in time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace st {

/// What a slot is for. It says which arena holds it, who writes it and whether a checkpoint keeps it.
enum class Role : int32_t {
  parameter,  // written by update sections only
  gradient,   // of a parameter or of one use of it; lives from the first micro-batch to the update
  optimizer,  // moments; created zero
  stash,      // an activation kept from a forward section for the backward of the same micro-batch
  input,      // bound to the host's memory for each micro-batch
  control,    // a few numbers that the host writes before a step (learning rate, step counts)
  report,     // a few numbers that the host reads after a step (loss, norm)
  output,     // a forward output that the host reads after the run
  packed,     // a parameter as a backend's products read it; written anew in each step's first micro-batch
  working,    // a parameter in 16 bits, as products take it; the parameter is its master and makes it anew in the first micro-batch
  part,       // this rank's piece of a parameter or gradient, a list of elements in that slot's memory
  gathered,   // a parameter or working copy of which each rank has a piece, whole for one unit of a section (gather_units)
};
std::string_view name_of(Role role);

enum class Init : int32_t { zeros, ones, normal, uniform, xavier, kaiming, values };

/// How a parameter's first values are made, from (seed, name, element) alone.
struct Initializer {
  Init kind = Init::zeros;
  double scale = 1;           // normal: standard deviation; uniform: half-width around 0; xavier, kaiming: gain
  std::vector<float> values;  // kind values: all elements, row-major
  bool operator==(const Initializer&) const = default;
};

struct Slot {  // lives across micro-batches or steps
  std::string name;
  Type type;
  Role role = Role::parameter;
  Initializer init;                 // parameters
  SlotId of = -1;                   // gradient, optimizer, packed, working, part, gathered: the parameter's slot
  bool trainable = true;            // parameters
  SlotId part_of = -1;              // part: the slot that it lies in
  int64_t first = 0;                // part: the slot's element that it begins with; a piece: the whole's
  std::optional<Shape> whole = {};  // a slot of which each rank has a piece, as this one's type says: of all together
  bool lent = false;                // a parameter, gradient or working copy in the host's memory: bound before each run, as inputs are

  const Shape& whole_shape() const { return whole ? *whole : type.shape; }
};

/// A scope of the model: "block.3". A boundary (block, attention, mlp) is where fusion stops and where recompute, gather and cut may stand;
/// a layer's own scope only names.
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
  Value count = {};  // a metric that is made of losses: value is a sum over it, and evaluation divides all sums by all counts
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

struct Program {
  std::vector<Section> sections;
  std::vector<Slot> slots;
  std::vector<Region> regions = {Region{}};
  std::vector<Output> outputs;
  Value loss_sum, loss_count;  // in the forward section; a step's loss is all sums over all counts (ir/counted_loss.h)
  double loss_seed = 1;        // what backward is seeded with, a power of two (scale_loss)
  StepSlotIds step;
  Mesh mesh;
  int32_t rank = 0;        // along the data axis: whose program this is
  std::vector<Ints> cuts;  // by slot: the element that each data rank's piece of a parameter begins with, and the end; empty: not cut
  bool in_pieces = false;  // each rank updates its pieces of the parameters alone (zero_shard)
  int64_t batch = 0;       // what kBatch is bound to; 0: still symbolic

  Section* find(Phase phase, int32_t stage = 0, int32_t chunk = 0);
  const Section* find(Phase phase, int32_t stage = 0, int32_t chunk = 0) const;
  Slot& slot(SlotId id) { return slots[static_cast<size_t>(id)]; }
  const Slot& slot(SlotId id) const { return slots[static_cast<size_t>(id)]; }
  SlotId slot_named(std::string_view name) const;  // -1: none
  SlotId parameter_of(const Node& load) const;     // the parameter that it loads, or loads a copy of as products take it; -1: neither
  SlotId whole_of(SlotId part) const;              // the slot that a part lies in; another slot: itself
  SlotId add_slot(Slot slot);
  RegionId boundary_of(RegionId region) const;  // the nearest boundary scope that holds it
};

/// Of a parameter, or of a part of it and the same part of the copy.
bool is_working_copy(const Program& program, SlotId copy, SlotId parameter);

/// Puts the batch into every symbolic shape and attribute and infers all types anew. Throws invalid_argument naming the op that cannot.
Program bind(const Program& program, int64_t batch);

}  // namespace st
