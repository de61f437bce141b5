// The executor decides nothing: a plan without what its program says about roles, phases, ranks and micro-batches runs the same.
#include <gtest/gtest.h>

#include "backend/kernel_side.h"
#include "ir/attrs.h"
#include "ir/cuts.h"
#include "passes/accumulate.h"
#include "passes/autocast.h"
#include "passes/clip.h"
#include "passes/data_parallel.h"
#include "passes/overlap.h"
#include "passes/update.h"
#include "passes/zero_shard.h"
#include "program_run.h"
#include "rank_group.h"
#include "small_program.h"

namespace st {
namespace {

constexpr int32_t kRanks = 2;
constexpr int64_t kRounds = 3, kMicroBatches = 5;  // the last rank has no rows in the last round

OptimizerChoice adamw_for_all(const Slot&, bool) { return {.op = Op::adamw, .attrs = make_attrs(Op::adamw, {})}; }

Plan step_of(int64_t zero, Reduce reduce, int32_t rank) {
  Program p = gpt_of_rank(kRanks, rank, 1);
  autocast(p, DType::bf16, When::first);
  p = with_backward(std::move(p), kMicroBatches);
  accumulate(p, kRounds);
  if (zero == 0) data_parallel(p, reduce, 40000);
  if (zero > 0) zero_shard(p, zero, reduce, 40000, adamw_for_all);
  if (zero == 1) shard_masters(p, false);
  clip(p, 1);
  update(p, adamw_for_all);
  overlap(p);
  return plan_for_reference(std::move(p), kRounds);
}

/// Leaves types, what gives them their shards (mesh, rank, the parameter that a slot is cut like), operands, and the attributes of kernels.
Plan stripped(Plan plan) {
  Program& program = plan.program;
  for (size_t s = 0; s < program.slots.size(); ++s) {
    Slot& slot = program.slots[s];
    const SlotId parameter = cut_like(program, static_cast<SlotId>(s));
    slot = {.name = "", .type = slot.type, .role = Role::stash, .init = {}, .of = parameter, .sums = slot.sums};
  }
  for (Section& section : program.sections) {
    section.phase = Phase::forward;
    for (Node& node : section.graph.nodes) {
      node.when = When::every;
      if (info_of(node.op).exchange) node.attrs = {};
    }
  }
  program.outputs.clear();
  program.step = {};
  return plan;
}

/// The bytes of all that lasts after two steps; the second one keeps copies of weights.
std::vector<std::byte> state_after(const Plan& plan, const Program& named, int rank, Communicator& own) {
  const auto backend = make_reference_backend();
  Storage storage(*backend);
  Workers workers(1);
  ExchangeQueue queue(own);
  Executor executor(plan, storage, workers, nullptr, &queue);
  auto* const weights = pointer_to<float>(storage.data(Arena::parameters));
  for (int64_t i = 0; i < executor.allocated(Arena::parameters) / 4; ++i) weights[i] = static_cast<float>(i * 37 % 101 - 50) / 400;
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 14; ++i) tokens.push_back((i * 7 + rank) % 70);
  for (const char* input : {"tokens", "targets"}) executor.bind(named.slot_named(input), tokens.data());
  const int64_t own_rounds = (kMicroBatches - rank + kRanks - 1) / kRanks;
  const auto contributors_in = [](int64_t round) {
    return Contributors{.in_round = static_cast<int>(std::min<int64_t>(kRanks, kMicroBatches - round * kRanks)), .in_step = kRanks};
  };
  const auto prepare = [&](int64_t round) {
    executor.set_contributors(contributors_in(round));
    return true;
  };
  for (int step = 0; step < 2; ++step) {
    auto* const rates = as<double>(executor.slot(named.step.rates));
    rates[0] = 1e-2;
    rates[1] = step + 1;
    if (step == 0) executor.make_copies({Copy::gathered});
    executor.keep_copies(step > 0);
    Executor::Cursor cursor;
    const auto is_later = [&](const Instruction& at) { return at.micro_batch == own_rounds; };
    const auto end = std::ranges::find_if(plan.instructions, is_later) - plan.instructions.begin();
    executor.run_until(cursor, std::min(static_cast<size_t>(end), plan.begin_of_update), Executor::kNoDeadline, prepare);
    for (int64_t round = own_rounds; round < kRounds; ++round)
      executor.run_without_rows(round, contributors_in(round),
                                round + 1 == kRounds ? Executor::RunByAll::both : Executor::RunByAll::in_round);
    cursor.at = plan.begin_of_update;
    executor.run_until(cursor, executor.end(), Executor::kNoDeadline, {});
  }
  std::vector<std::byte> state;
  for (const Arena arena : {Arena::parameters, Arena::gradients, Arena::optimizer})
    state.insert(state.end(), pointer_to(storage.data(arena)), pointer_to(storage.data(arena)) + executor.allocated(arena));
  return state;
}

TEST(StrippedPlan, IsExecutedLikeTheWholeOne) {
  for (const auto& [zero, reduce] :
       {std::pair{0, Reduce::micro}, {1, Reduce::micro}, {2, Reduce::step}, {3, Reduce::micro}, {3, Reduce::step}})
    each_of_group(kRanks, [&, stage = zero, by = reduce](int rank, Communicator& own) {
      const Plan plan = step_of(stage, by, rank), bare = stripped(plan);
      EXPECT_NE(print_instructions(plan), print_instructions(bare)) << "nothing was stripped";
      EXPECT_EQ(plan.instructions, bare.instructions);
      const std::vector<std::byte> whole = state_after(plan, plan.program, rank, own);
      EXPECT_TRUE(whole == state_after(bare, plan.program, rank, own)) << "zero " << stage << ", rank " << rank;
    });
}

}  // namespace
}  // namespace st
