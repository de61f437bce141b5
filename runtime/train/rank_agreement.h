// What ranks of a run must have alike, and whether they do: before anything is exchanged that goes by it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "exec/executor.h"
#include "train/recipe.h"
#include "train/timeline.h"
#include "train/training_state.h"

namespace st {

/// The recipe of one of so many ranks. Throws invalid_argument where it says another number than 1 or that.
Recipe on_ranks(Recipe recipe, int64_t ranks);

struct RankFact {
  std::string name, value;  // "lr", "0.001"
};

/// Of a run of several ranks, all that its bits and its exchange go by: version, kernels, the recipe, graph and data (as `state` knows
/// them), the ordered collectives of the plan. Keys that change speed alone are not in it.
std::vector<RankFact> run_facts(const Recipe& recipe, const TrainingState& state, const Plan& plan);

/// Throws rank_mismatch where `facts` are not the same on all ranks, on each of them the same: the first rank that differs from rank 0, in
/// what, with both values; messages begin with `part`. The group is whole after that. To be called by all ranks; other errors are the
/// communicator's.
void require_agreement(Communicator& ranks, std::span<const RankFact> facts, std::string_view part = "trainer");

/// Throws rank_mismatch, on all ranks the same, where a parameter has other bytes on some rank: the rank that is alone with its bytes is
/// named, and the first parameter.
void require_replicas(Communicator& ranks, const Executor& executor, Backend& backend);

/// Of zero 3, where what is exchanged goes by what is recomputed (recompute auto): the scopes that rank 0's `plan` recomputes in the least
/// memory that a rank has, on all ranks the same. Nothing: the recipe says which.
std::optional<std::vector<RegionId>> recomputed_by_all(Communicator& ranks, const Recipe& recipe, PlanOptions options,
                                                       const std::function<Plan(const PlanOptions&)>& plan);

/// With what a rank begins a step.
struct StepStart {
  static constexpr int64_t kFromData = -1;
  int64_t attempts, items;  // steps it has made, items it has taken of the data's stream
  double lr, loss_scale;
  int64_t rows;              // that it was given; kFromData: it takes its own of the data
  int64_t lacks_copies = 0;  // 1: its working copies are not those of its pieces of the weights
  RankTimes last_step = {};  // of this rank, where it has made the step before itself
};

/// Rows that all ranks were given together, or kFromData. `starts`: by rank, of which the caller fills in its own. Throws rank_mismatch, on
/// all ranks the same, where a rank begins another step than rank 0, or with another learning rate or loss scale, or where the rows are not
/// those of the first micro-batches of `batch` rows each, given out in turn.
int64_t rows_of_all(Communicator& ranks, std::span<StepStart> starts, int64_t batch);

}  // namespace st
