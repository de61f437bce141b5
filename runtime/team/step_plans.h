// The plans of a rank's step on the graph's own loss: one that fits into memory, or a refusal with changes of the recipe that fit.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/communicator.h"
#include "exec/storage.h"
#include "model/model.h"
#include "recipe/memory_fixes.h"
#include "recipe/recipe.h"

namespace st {

/// The ranks of the mesh that one exchanges with; null: it is the only one along that axis.
struct AxisRanks {
  const Communicator *data, *tensor, *stages;
};

/// The model, recipe and memory that a rank's plans of a step are made for, which are borrowed.
struct StepPlans {
  const Model& model;
  const Recipe& recipe;
  const Storage& storage;
  int threads;
  PlanOptions options;  // memory: what this rank may have of the memory that there is
  AxisRanks ranks;

  /// If recompute auto finds nothing that fits in with.memory, there is no plan: throws out_of_memory with the changes of the recipe that
  /// fit, and what they save of a step that recomputes nothing.
  Plan within(const PlanOptions& with) const;
  /// Throws out_of_memory with the step's largest parts and the changes that fit. Packed weights only save time: where they do not fit, the
  /// same bits are computed without them.
  Plan that_fits() const;

 private:
  const Context& context() const { return model.context(); }
  bool is_held() const { return static_cast<bool>(storage.data(Arena::parameters)); }
  Plan plan(const Recipe& by, const PlanOptions& with) const;
  int64_t need(const Plan& plan) const;
  void require_room(const Plan& plan, bool with_fixes) const;
  void require_room_on_host(const Plan& plan, const Recipe& by, bool has_parameters) const;
  int64_t need_by(Recipe by, int64_t there, int64_t held) const;
  std::vector<MemoryFix> fixes(const Plan& plan, int64_t there) const;
};

}  // namespace st
