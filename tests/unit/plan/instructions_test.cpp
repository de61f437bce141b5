// What instructions say beyond their node: the copies of weights that they make, how collectives run, and on which ranks.
#include <gtest/gtest.h>

#include "passes/accumulate.h"
#include "passes/autocast.h"
#include "passes/clip.h"
#include "passes/data_parallel.h"
#include "passes/freeze.h"
#include "passes/overlap.h"
#include "passes/pack_weights.h"
#include "passes/pipeline_cut.h"
#include "passes/update.h"
#include "passes/zero_shard.h"
#include "plan/pipeline_schedule.h"
#include "plan/plan.h"
#include "random_program.h"
#include "small_program.h"

namespace st {
namespace {

using Kind = Instruction::Kind;
using Ranks = Instruction::Ranks;

constexpr int64_t kRounds = 3;

OptimizerChoice sgd_for_all(const Slot&, bool) { return {.op = Op::sgd, .attrs = make_attrs(Op::sgd, {})}; }

Plan planned(Program program) {
  MemoryLayout memory = memory_without_workspace(program);
  return make_plan(program, std::move(memory), in_turn(program, kRounds));
}

struct StepOf {
  int32_t ranks = 3;
  int64_t zero = 0;
  Reduce reduce = Reduce::micro;
  bool freezes = false, keeps_master_shards = false, overlaps = false;

  Plan plan() const {
    Program p = gpt_of_rank(ranks, 1);
    if (freezes) freeze(p, [](const Slot& parameter) { return parameter.name.starts_with("block.0."); });
    autocast(p, DType::bf16, When::first);
    p = with_backward(std::move(p), kRounds * ranks);
    accumulate(p, kRounds);
    if (zero == 0) data_parallel(p, reduce, 40000);
    if (zero > 0) zero_shard(p, zero, reduce, 40000, sgd_for_all);
    if (keeps_master_shards) shard_masters(p, false);
    clip(p, 1);
    update(p, sgd_for_all);
    if (overlaps) overlap(p);
    return planned(std::move(p));
  }
};

const Node& node_at(const Plan& plan, const Instruction& at) {
  return plan.program.sections[static_cast<size_t>(at.section)].graph[at.node];
}

int64_t makers(const Plan& plan, Copy copy) { return std::ranges::count(plan.instructions, copy, &Instruction::makes); }

TEST(Instructions, ThatPackAWeightMakeACopyForTheStep) {
  Program program = training_program(small_gpt(), 2, kRounds);
  pack_weights(program, kRounds, [](auto&&...) { return int64_t{64000}; });
  const Plan plan = planned(std::move(program));
  EXPECT_EQ(makers(plan, Copy::of_step), 18);  // four products in two blocks and the head, for forward and backward
  for (const Instruction& at : plan.instructions) EXPECT_EQ(at.makes == Copy::of_step, node_at(plan, at).op == Op::pack);
}

TEST(Instructions, ThatMakeAWorkingCopyMakeOneThatLasts) {
  for (const bool freezes : {false, true}) {
    const Plan plan = StepOf{.freezes = freezes}.plan();
    const auto copies = std::ranges::count(plan.program.slots, Role::working, &Slot::role);
    EXPECT_EQ(makers(plan, Copy::lasting), copies) << "each is cast in its place";
    for (const Instruction& at : plan.instructions)
      if (at.makes == Copy::lasting) {
        EXPECT_EQ(node_at(plan, at).op, Op::cast);
        EXPECT_EQ(at.micro_batch, 0);
      }
    EXPECT_FALSE(makes(plan, Copy::gathered));
  }
}

TEST(Instructions, ThatMakeAWorkingCopyWhichTheUpdateOutdatesMakeItForTheStep) {
  Plan lasting = StepOf{}.plan();
  for (Node& node : lasting.program.find(Phase::update)->graph.nodes)
    std::erase_if(node.writes, [&](SlotId slot) { return lasting.program.slot(slot).role == Role::working; });
  const Plan plan = make_plan(lasting.program, lasting.memory, in_turn(lasting.program, kRounds));
  EXPECT_EQ(makers(plan, Copy::lasting), 0);
  EXPECT_EQ(makers(plan, Copy::of_step), makers(lasting, Copy::lasting));
}

TEST(Instructions, ThatGatherCopiesOfShardsWaitForTheRequest) {
  const Plan plan = StepOf{.zero = 1, .keeps_master_shards = true}.plan();
  EXPECT_EQ(makers(plan, Copy::lasting), 1) << "of the tied weight, which the embedding reads too";
  std::map<Op, int64_t> ops;
  for (const Instruction& at : plan.instructions) {
    if (at.makes != Copy::gathered) continue;
    ++ops[node_at(plan, at).op];
    EXPECT_EQ(at.ranks, Ranks::with_rows) << "a rank without rows has nothing to do with them";
  }
  EXPECT_EQ(ops[Op::all_gather], 1);
  EXPECT_GT(ops[Op::cast] + ops[Op::store], 1);
}

/// The copies are there before the step: a stage packs them before its first message, as it does those that it makes.
TEST(Instructions, ThatPackGatheredCopiesOfAStageAreEarly) {
  const PipelineSchedule schedule = make_schedule("interleaved", 2, 2, kRounds + 1);
  PipelineParts parts;
  for (int32_t part = 0; part < schedule.parts(); ++part) parts.stage_of.push_back(schedule.stage_of(part));
  for (const bool keeps_shards : {false, true}) {
    Program p = gpt_of_rank(2, 0);
    p.mesh.stage = 2;
    p.stage = 1;
    autocast(p, DType::bf16, When::first);
    p = with_backward(std::move(p), schedule.micro_batches);
    pipeline_cut(p, parts);
    accumulate(p, schedule.micro_batches);
    zero_shard(p, 1, Reduce::micro, 40000, sgd_for_all);
    if (keeps_shards) shard_masters(p, false);
    clip(p, 1);
    update(p, sgd_for_all);
    pack_weights(p, schedule.micro_batches, [](auto&&...) { return int64_t{64000}; });
    const StepOrder order = in_pipeline(p, schedule);
    MemoryLayout memory = memory_plan(p, order, [](auto&&...) { return int64_t{0}; });
    const Plan plan = make_plan(p, std::move(memory), order);
    EXPECT_EQ(makes(plan, Copy::gathered), keeps_shards);
    const auto is_pack = [&](const Instruction& at) { return node_at(plan, at).op == Op::pack; };
    const auto wait = std::ranges::find(plan.instructions, Kind::receive, &Instruction::kind);
    EXPECT_GT(std::count_if(plan.instructions.begin(), wait, is_pack), 0);
    EXPECT_EQ(std::count_if(wait, plan.instructions.end(), is_pack), 2) << "of the tied weight, which comes in a message";
  }
}

TEST(Instructions, OfCollectivesThatHaveAnAwaitArePosted) {
  for (const int64_t zero : {0, 2, 3})
    for (const bool overlaps : {false, true}) {
      const Plan plan = StepOf{.zero = zero, .overlaps = overlaps}.plan();
      std::vector<int64_t> open(plan.exchanges.size());  // posts without their await
      int64_t posts = 0;
      for (const Instruction& at : plan.instructions) {
        ASSERT_EQ(at.exchange >= 0, at.kind != Kind::kernel);
        if (at.kind == Kind::kernel) continue;
        const auto index = static_cast<size_t>(at.exchange);
        if (at.kind != Kind::await) {
          EXPECT_EQ(plan.exchanges[index].op, node_at(plan, at).op);
        }
        open[index] += at.kind == Kind::post ? 1 : at.kind == Kind::await ? -1 : 0;
        EXPECT_TRUE(open[index] == 0 || open[index] == 1);
        posts += at.kind == Kind::post ? 1 : 0;
      }
      EXPECT_EQ(std::ranges::count(open, 0), std::ssize(open));
      EXPECT_EQ(posts > 0, overlaps) << "zero " << zero;
    }
}

TEST(Instructions, OfCollectivesSayWhetherRanksWithoutRowsRunThem) {
  for (const int64_t zero : {0, 1, 2, 3})
    for (const Reduce reduce : {Reduce::micro, Reduce::step}) {
      const Plan plan = StepOf{.zero = zero, .reduce = reduce, .overlaps = true}.plan();
      for (size_t i = 0; i < plan.begin_of_update; ++i) {
        const Instruction& at = plan.instructions[i];
        const Node& node = node_at(plan, at);
        const bool is_collective = at.kind == Kind::exchange || at.kind == Kind::post;
        const bool is_shard_of_unit = zero == 3 && at.makes == Copy::lasting;  // the other ranks gather it
        const Ranks wanted = !is_collective && !is_shard_of_unit        ? Ranks::with_rows
                             : is_collective && node.when == When::last ? Ranks::all_in_step
                                                                        : Ranks::all_in_round;
        EXPECT_EQ(at.ranks, wanted) << name_of(node.op) << ", zero " << zero;
      }
      for (size_t i = plan.begin_of_update; i < plan.instructions.size(); ++i) EXPECT_EQ(plan.instructions[i].ranks, Ranks::all_in_step);
      const bool reduces_once = std::ranges::any_of(plan.instructions, [&](const Instruction& at) {
        return at.ranks == Ranks::all_in_step && node_at(plan, at).op == Op::reduce_scatter;
      });
      EXPECT_EQ(reduces_once, reduce == Reduce::step) << "zero " << zero;
    }
}

TEST(Instructions, ExchangesCutEachOperandIntoShardsThatCoverIt) {
  for (const int64_t zero : {0, 2, 3}) {
    const Plan plan = StepOf{.zero = zero}.plan();
    ASSERT_FALSE(plan.exchanges.empty());
    for (const ExchangePlan& exchange : plan.exchanges) {
      EXPECT_FALSE(exchange.label.empty());
      EXPECT_EQ(exchange.op == Op::rank_sums, exchange.tensors.empty());
      for (const ExchangePlan::Tensor& tensor : exchange.tensors) {
        int64_t next = tensor.first;
        for (int32_t rank = 0; rank < 3; ++rank) {
          const ExchangePlan::Range shard = shard_of(tensor, plan.program, rank);
          EXPECT_TRUE(shard.elements == 0 || shard.begin == next) << exchange.label;
          next += shard.elements;
        }
        const int64_t elements = plan.program.slot(tensor.cut_like).type.shape.elements();
        EXPECT_EQ(next - tensor.first, (elements + tensor.grain - 1) / tensor.grain) << exchange.label;
      }
    }
  }
}

TEST(Instructions, ArePrintedWithAllThatTheySay) {
  const Plan plan = StepOf{.zero = 2, .overlaps = true}.plan();
  const std::string shown = print_instructions(plan);
  for (const char* part :
       {"micro-batch 0\n", "micro-batches 1 to 2\n", "update\n", ": cast, lasting copy\n", " kernels\n", "update %", ": gather_squares, ",
        ": rank_sums, loss_sum, all ranks in each round\n", ": await, gradient.token_embedding.weight and 3 more\n",
        ": reduce_scatter, posted, gradient.token_embedding.weight and 3 more, all ranks in each round\n"})
    EXPECT_NE(shown.find(part), std::string::npos) << part << "\n" << shown;
  EXPECT_NE(explain(plan).find(shown), std::string::npos);
  EXPECT_NE(print_instructions(StepOf{.reduce = Reduce::step}.plan()).find(", all ranks once a step\n"), std::string::npos);
  EXPECT_NE(print_instructions(StepOf{.zero = 1, .keeps_master_shards = true}.plan()).find(", gathered copy\n"), std::string::npos);
}

TEST(Instructions, OfTheSameStepAreEqualAndOfAnotherAreNot) {
  const StepOf step{.zero = 2, .overlaps = true};
  const auto differs = [&](const StepOf& other) {
    const Plan a = step.plan(), b = other.plan();
    return a.instructions != b.instructions || a.exchanges != b.exchanges;
  };
  EXPECT_FALSE(differs(step));
  EXPECT_TRUE(differs({.zero = 2, .overlaps = false}));
  EXPECT_TRUE(differs({.zero = 2, .reduce = Reduce::step, .overlaps = true}));
}

}  // namespace
}  // namespace st
