// Collectives that overlap with backward: the places of their awaits, and their memory.

#include "base/error.h"
#include "passes/accumulate.h"
#include "passes/clip.h"
#include "passes/data_parallel.h"
#include "passes/overlap.h"
#include "passes/zero_shard.h"
#include "small_program.h"

namespace st {
namespace {

constexpr int64_t kBucket = 40000;

OptimizerChoice sgd_for_all(const Slot&, bool) { return {.op = Op::sgd, .attrs = make_attrs(Op::sgd, {})}; }

/// A step of a small GPT on three ranks, up to clip().
Program exchanged(int64_t rounds, Reduce reduce, int64_t stage) {
  Program program = with_backward(gpt_of_rank(3, 1), rounds * 3);
  accumulate(program, rounds);
  if (stage == 0)
    data_parallel(program, reduce, kBucket);
  else
    zero_shard(program, stage, reduce, kBucket, sgd_for_all);
  clip(program, 1);
  return program;
}

std::vector<Op> ops_of(const Section& section, bool with_awaits) {
  std::vector<Op> ops;
  for (const Node& node : section.graph.nodes)
    if (with_awaits || node.op != Op::await) ops.push_back(node.op);
  return ops;
}

TEST(Overlap, AwaitsEachExchangeThatHasComputingBesideItAndMovesNothing) {
  for (const int64_t stage : {0, 1, 2})
    for (const int64_t rounds : {1, 2})
      for (const Reduce reduce : {Reduce::micro, Reduce::step}) {
        const Program before = exchanged(rounds, reduce, stage);
        Program program = before;
        overlap(program);
        verify(program, "overlap");
        for (size_t s = 0; s < program.sections.size(); ++s)
          EXPECT_EQ(ops_of(program.sections[s], false), ops_of(before.sections[s], true)) << "stage " << stage << ", section " << s;
        const Graph& graph = program.find(Phase::backward)->graph;
        const auto computes = [](const Node& node) { return !is_view(node.op) && !info_of(node.op).exchange; };
        const auto last = std::find_if(graph.nodes.rbegin(), graph.nodes.rend(), computes).base();
        int64_t begun = 0, awaited = 0;
        for (auto node = graph.nodes.begin(); node != graph.nodes.end(); ++node) {
          begun += info_of(node->op).exchange && node->op != Op::await && node < last ? 1 : 0;
          awaited += node->op == Op::await ? 1 : 0;
        }
        EXPECT_GT(begun, 1) << "stage " << stage;
        EXPECT_EQ(awaited, begun) << "stage " << stage;
      }
}

TEST(Overlap, KeepsAtMostTwoBucketsOfGradientsForIt) {
  const auto activations = [](const Program& program) { return memory_without_workspace(program).of(Arena::activations); };
  for (const int64_t stage : {0, 2}) {
    Program program = exchanged(2, Reduce::micro, stage);
    int64_t most = kBucket;
    for (const Slot& slot : program.slots)
      if (slot.role == Role::parameter) most = std::max(most, slot.type.bytes());
    const int64_t alone = activations(program);
    overlap(program);
    const int64_t beside = activations(program);
    EXPECT_GT(beside, alone) << "nothing is kept";
    EXPECT_LE(beside, alone + 2 * most) << "stage " << stage;
  }
}

TEST(Overlap, IsRefusedWhereAnAwaitIsNotWhereItHasToBe) {
  Program whole = exchanged(1, Reduce::micro, 0);
  overlap(whole);
  const auto refused = [&](auto change) {
    Program program = whole;
    std::vector<Node>& nodes = program.find(Phase::backward)->graph.nodes;
    ASSERT_EQ(nodes.back().op, Op::await);
    change(nodes);
    EXPECT_THROW(verify(program, "a change"), Error);
  };
  const auto aim = [](Node& await, int64_t at) { await.attrs = make_attrs(Op::await, {{"exchange", at}}); };
  refused([&](auto& nodes) { nodes.push_back(nodes.back()); });         // twice
  refused([&](auto& nodes) { aim(nodes.back(), std::ssize(nodes)); });  // before it begins
  refused([&](auto& nodes) { aim(nodes.back(), 0); });                  // of a node that is not a collective
  refused([&](auto& nodes) { nodes.back().when = When::rest; });        // in other micro-batches
  const auto use_before = [&](auto& nodes, bool reads) {
    const Node await = nodes.back();
    nodes.pop_back();
    const Node& exchange = nodes[static_cast<size_t>(await.attrs.integer("exchange"))];
    const SlotId slot = exchange.writes.at(0);
    const Type type = whole.slot(slot).type;
    const auto at = static_cast<int32_t>(nodes.size());
    nodes.push_back({.op = Op::load, .in = {}, .out = {type}, .reads = {slot}, .writes = {}, .attrs = {}});
    if (reads) nodes.push_back({.op = Op::neg, .in = {{at, 0}}, .out = {type}, .reads = {}, .writes = {}, .attrs = {}});
    nodes.push_back(await);
  };
  refused([&](auto& nodes) { use_before(nodes, true); });  // after a node that reads what it writes
  Program loaded = whole;
  use_before(loaded.find(Phase::backward)->graph.nodes, false);
  EXPECT_NO_THROW(verify(loaded, "a change")) << "a load alone reads nothing yet";
}

}  // namespace
}  // namespace st
