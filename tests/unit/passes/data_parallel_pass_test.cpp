#include "passes/data_parallel.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/cuts.h"
#include "ir/verify.h"
#include "models/gpt.h"
#include "passes/accumulate.h"
#include "passes/autodiff.h"
#include "passes/clip.h"
#include "passes/scale_loss.h"

namespace st {
namespace {

Program differentiated(int32_t ranks, int32_t rank, int64_t rounds) {
  Program program = bind(build_gpt({.layers = 2, .width = 66, .heads = 3, .context = 7, .vocabulary = 70}), 2);
  program.mesh.data = ranks;
  program.rank = rank;
  scale_loss(program, rounds * ranks);
  autodiff(program);
  accumulate(program, rounds);
  return program;
}

std::vector<const Node*> nodes_of(const Program& program, Phase phase, Op op) {
  std::vector<const Node*> found;
  for (const Node& node : program.find(phase)->graph.nodes)
    if (node.op == op) found.push_back(&node);
  return found;
}

TEST(Cuts, GiveEachElementToOneRankAndTheSameToAllButForOneGrain) {
  for (const int32_t ranks : {1, 2, 3, 4, 5, 8}) {
    Program program = differentiated(ranks, 0, 1);
    cut_parameters(program);
    std::vector<int64_t> grains(static_cast<size_t>(ranks));
    for (size_t s = 0; s < program.slots.size(); ++s) {
      if (program.slots[s].role != Role::parameter) continue;
      const Ints& cuts = program.cuts[s];
      ASSERT_EQ(cuts.size(), static_cast<size_t>(ranks) + 1);
      EXPECT_EQ(cuts.front(), 0);
      EXPECT_EQ(cuts.back(), program.slots[s].type.shape.elements());
      for (int32_t rank = 0; rank < ranks; ++rank) {
        const int64_t begin = cuts[static_cast<size_t>(rank)], end = cuts[static_cast<size_t>(rank) + 1];
        EXPECT_LE(begin, end);
        EXPECT_TRUE(begin % kCutGrain == 0 || begin == cuts.back()) << begin;
        grains[static_cast<size_t>(rank)] += (end - begin + kCutGrain - 1) / kCutGrain;
      }
    }
    const auto [least, most] = std::ranges::minmax(grains);
    EXPECT_LE(most - least, 1) << ranks << " ranks";
  }
}

TEST(DataParallel, ExchangesEachGradientOnceInBucketsOfTheSizeAskedFor) {
  for (const int64_t bucket : {int64_t{1}, int64_t{40000}, int64_t{1} << 30}) {
    Program program = differentiated(3, 1, 1);
    const auto gradients = static_cast<size_t>(std::ranges::count(program.slots, Role::gradient, &Slot::role));
    data_parallel(program, Reduce::micro, bucket);
    verify(program, "data_parallel");
    const auto exchanges = nodes_of(program, Phase::backward, Op::reduce_scatter);
    size_t exchanged = 0;
    for (const Node* node : exchanges) exchanged += node->in.size();
    EXPECT_EQ(exchanged, gradients);
    EXPECT_TRUE(bucket > 1 || exchanges.size() == gradients) << exchanges.size();
    EXPECT_TRUE(bucket < int64_t{1} << 30 || exchanges.size() == 1) << exchanges.size();
    EXPECT_EQ(nodes_of(program, Phase::forward, Op::rank_sums).size(), 1U);
    EXPECT_EQ(nodes_of(program, Phase::update, Op::all_gather).size(), 1U);
    clip(program, 1);
    verify(program, "clip");
  }
}

TEST(DataParallel, ByMicroBatchNothingIsAddedUpButByItsOwner) {
  Program program = differentiated(3, 2, 2);
  data_parallel(program, Reduce::micro, 40000);
  verify(program, "data_parallel");
  EXPECT_TRUE(nodes_of(program, Phase::backward, Op::accumulate).empty());
  for (const Node* node : nodes_of(program, Phase::backward, Op::reduce_scatter)) {
    EXPECT_EQ(node->attrs.flag("adds"), node->when == When::rest);
    EXPECT_TRUE(node->when == When::first || node->when == When::rest);
  }
}

TEST(DataParallel, OnceAStepOnlyTheLastMicroBatchExchanges) {
  Program program = differentiated(3, 0, 2);
  data_parallel(program, Reduce::step, 40000);
  verify(program, "data_parallel");
  EXPECT_FALSE(nodes_of(program, Phase::backward, Op::accumulate).empty());
  for (const Node* node : nodes_of(program, Phase::backward, Op::reduce_scatter)) EXPECT_EQ(node->when, When::last);
}

}  // namespace
}  // namespace st
