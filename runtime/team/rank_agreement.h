// Checks that the ranks of a run agree on everything that their collectives depend on, before the first of them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mesh.h"
#include "comm/communicator.h"
#include "comm/rank_facts.h"
#include "exec/executor.h"
#include "recipe/recipe.h"
#include "team/run_identity.h"

namespace st {

/// The recipe with `ranks` set. Throws invalid_argument if it has a number of ranks other than 1 or `ranks`.
Recipe on_ranks(Recipe recipe, int64_t ranks);

/// The facts that decide the results and collectives of a run on several ranks: version, kernels, recipe, graph and data (from `run`), the
/// ordered collectives of the plan. Keys that only change speed are left out.
std::vector<RankFact> run_facts(const Recipe& recipe, const RunIdentity& run, const Plan& plan);

/// The last of them alone, which only ranks along the data axis have in common.
std::vector<RankFact> collective_facts(const Plan& plan);

/// require_agreement(), but each rank must agree with the first of its own data ranks.
void require_agreement_along_data(Communicator& ranks, const Mesh& mesh, std::span<const RankFact> facts);

/// Collective call. Throws the same rank_mismatch on all ranks if a parameter's bytes differ between ranks; names the odd rank out and the
/// first such parameter.
void require_replicas(Communicator& ranks, const Executor& executor, Backend& backend);

/// With zero 3 and recompute auto the collectives depend on the recomputed scopes: returns, equal on all ranks, the scopes that rank 0's
/// `plan` recomputes in the smallest memory of any rank. Empty: the recipe names the scopes. Collective call.
std::optional<std::vector<RegionId>> recomputed_by_all(Communicator& ranks, const Recipe& recipe, PlanOptions options,
                                                       const std::function<Plan(const PlanOptions&)>& plan);

}  // namespace st
