#include "planner/run_plan.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "data/stream.h"
#include "ir/cuts.h"
#include "passes/scale_loss.h"
#include "team/rank_agreement.h"

namespace st {
namespace {

/// Its stage, the micro-batches that it computes, the elements that it has of all cut parameters together and of all pieces, and the tensor
/// rank, or being the first data rank, where that matters.
using Likeness = std::array<int64_t, 5>;

/// The rank is on the stage of `program`, which is planned for another rank there.
Likeness likeness(const PlannedRun& run, const Program& program, const MeshPosition& at) {
  const MicroBatches batches{
      .rows = run.recipe.batch, .per_step = run.recipe.step_micro_batches(), .ranks = program.mesh.data, .rank = at.data};
  Likeness all = {at.stage, batches.own()};
  all[4] = run.whole_on_host() > 0 && at.data == 0 ? 1 : 0;
  for (SlotId s = 0; s < static_cast<SlotId>(program.slots.size()); ++s) {
    const Slot& slot = program.slot(s);
    if (slot.role != Role::parameter) continue;
    if (is_cut(program, s)) all[2] += shard_elements(program, s, at.data);
    if (program.mesh.tensor == 1) continue;
    const ParameterPiece piece = piece_of(program, slot, at.tensor);
    all[3] += piece.is_cut() ? piece.whole.elements() / piece.ranks : slot.type.shape.elements();
  }
  return all;
}

/// Rows of values are cut over tensor ranks too: alike where all have as many.
bool are_tensor_ranks_alike(const PlannedRun& run) {
  const int64_t rows = rows_of_loss(run.model, run.recipe.batch);
  return run.recipe.tensor == 1 || rows % run.recipe.tensor == 0;
}

}  // namespace

RunPlan::RunPlan(const PlannedRun& run) : run_(run), class_of_rank_(static_cast<size_t>(run.recipe.ranks)) { classify(); }

void RunPlan::classify() {
  const Mesh mesh = run_.mesh();
  const bool alike = are_tensor_ranks_alike(run_);
  BegunPlans begun;
  for (int32_t stage = 0; stage < mesh.stage; ++stage) {
    std::map<Likeness, size_t> known;
    std::optional<Program> of_stage;
    std::vector<RankFact> collectives;
    for (int32_t data = 0; data < mesh.data; ++data)
      for (int32_t tensor = 0; tensor < mesh.tensor; ++tensor) {
        const MeshPosition at{.data = data, .tensor = tensor, .stage = stage};
        const int32_t rank = rank_at(mesh, at);
        const auto plan_class = [&] {
          RankPlan planned = plan_of_rank(run_, rank, &begun);
          const std::vector<RankFact> own = collective_facts(planned.plan);
          if (!of_stage) collectives = own;
          for (size_t i = 0; i < own.size(); ++i)
            require(own[i].value == collectives[i].value, Code::internal, "plan: rank ", rank, " makes other collectives than rank ",
                    rank_at(mesh, {.data = 0, .tensor = 0, .stage = stage}));
          if (links_.empty()) links_ = planned.plan.program.links;
          classes_.push_back({rank, 0, at, planned.numbers, std::move(planned.trace)});
          if (!of_stage) of_stage = std::move(planned.plan.program);
          return classes_.size() - 1;
        };
        size_t index = 0;
        if (!of_stage) {
          index = plan_class();
          known.emplace(likeness(run_, *of_stage, at), index);
        } else {
          Likeness own = likeness(run_, *of_stage, at);
          if (!alike) own[4] = tensor;
          const auto found = known.find(own);
          index = found != known.end() ? found->second : plan_class();
          known.emplace(own, index);
        }
        class_of_rank_[static_cast<size_t>(rank)] = index;
        ++classes_[index].ranks;
      }
  }
}

const RankClass& RunPlan::fullest() const {
  return *std::ranges::max_element(classes_, {}, [](const RankClass& of) { return of.numbers.memory.device_total(); });
}

Simulation RunPlan::simulation() const {
  return {.mesh = run_.mesh(), .links = links_, .trace = [this](int32_t rank) -> const RankTrace& { return class_of(rank).trace; }};
}

SimulatedStep RunPlan::simulate(const std::vector<Trouble>& troubles, const std::function<void(const SimulatedSpan&)>& watch) const {
  Simulation simulation = this->simulation();
  simulation.watch = watch;
  if (!troubles.empty())
    simulation.pace = [&troubles](int32_t rank) {
      RankPace pace;
      for (const Trouble& trouble : troubles)
        if (trouble.rank == rank) (trouble.kind == Trouble::Kind::straggler ? pace.computing : pace.exchange) *= trouble.factor;
      return pace;
    };
  return st::simulate(simulation);
}

}  // namespace st
