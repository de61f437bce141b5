#include "passes/data_parallel.h"

#include <map>

#include "ir/cuts.h"
#include "passes/accumulate.h"
#include "passes/average.h"
#include "passes/clip.h"
#include "passes/zero_shard.h"
#include "refusal.h"
#include "small_program.h"

namespace st {
namespace {

Program differentiated(int32_t ranks, int32_t rank, int64_t rounds) {
  Program program = with_backward(gpt_of_rank(ranks, rank), rounds * ranks);
  accumulate(program, rounds);
  return program;
}

TEST(Cuts, GiveEachElementToOneRankAndTheSameToAllButForOneGrain) {
  for (const int32_t ranks : {1, 2, 3, 4, 5, 8}) {
    Program program = differentiated(ranks, 0, 1);
    cut_parameters(program);
    std::vector<int64_t> grains(static_cast<size_t>(ranks));
    for (size_t s = 0; s < program.slots.size(); ++s) {
      if (program.slots[s].role != Role::parameter) continue;
      ASSERT_TRUE(is_cut(program, static_cast<SlotId>(s)));
      const Cuts cuts = cuts_of(program, static_cast<SlotId>(s));
      EXPECT_EQ(cuts[0], 0);
      EXPECT_EQ(cuts[ranks], program.slots[s].type.shape.elements());
      for (int32_t rank = 0; rank < ranks; ++rank) {
        const int64_t begin = cuts[rank], end = cuts[rank + 1];
        EXPECT_LE(begin, end);
        EXPECT_TRUE(begin % kCutGrain == 0 || begin == cuts[ranks]) << begin;
        grains[static_cast<size_t>(rank)] += (end - begin + kCutGrain - 1) / kCutGrain;
      }
    }
    const auto [least, most] = std::ranges::minmax(grains);
    EXPECT_LE(most - least, 1) << ranks << " ranks";
  }
}

TEST(Cuts, GiveTheGrainsThatRemainToTheRanksFromTheTurnOn) {
  const Cuts cuts{.elements = 69, .grain = 10, .turn = 3, .ranks = 4};  // 7 grains: one each, and one more to ranks 3, 0 and 1
  std::vector<int64_t> begins;
  for (int64_t rank = 0; rank <= cuts.ranks; ++rank) begins.push_back(cuts[rank]);
  EXPECT_EQ(begins, (std::vector<int64_t>{0, 20, 40, 50, 69}));
  EXPECT_EQ((Cuts{.elements = 5, .grain = 1024, .turn = 1, .ranks = 3}[1]), 0);
  EXPECT_EQ((Cuts{.elements = 5, .grain = 1024, .turn = 1, .ranks = 3}[2]), 5);
  EXPECT_EQ((Cuts{.elements = 0, .grain = 1024, .turn = 2, .ranks = 3}[3]), 0);
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
    // Each is gathered after its reduction, except the tied one, whose uses still have to be added.
    size_t gathered = 0;
    for (const Node* node : nodes_of(program, Phase::backward, Op::all_gather)) gathered += node->writes.size();
    EXPECT_EQ(gathered + 2, gradients);
    ASSERT_EQ(nodes_of(program, Phase::update, Op::all_gather).size(), 1U);
    EXPECT_EQ(nodes_of(program, Phase::update, Op::all_gather)[0]->writes.size(), 1U);
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

/// Muon for weights of products, AdamW for the rest.
OptimizerChoice muon_or_adamw(const Slot& parameter, bool is_weight) {
  const Op op = is_weight && parameter.type.shape.rank() == 2 ? Op::muon : Op::adamw;
  return {.op = op, .attrs = make_attrs(op, {})};
}

Program sharded(int32_t rank, int64_t rounds, int64_t stage, Reduce reduce) {
  Program program = differentiated(3, rank, rounds);
  zero_shard(program, stage, reduce, 40000, muon_or_adamw);
  verify(program, "zero_shard");
  clip(program, 1);
  verify(program, "clip");
  update(program, muon_or_adamw);
  verify(program, "update");
  average(program, 0.5);
  verify(program, "average");
  return program;
}

TEST(ZeroShard, LeavesAMatrixThatIsUpdatedAsAWholeToOneRank) {
  int64_t whole = 0;
  for (int32_t rank = 0; rank < 3; ++rank) {
    const Program program = sharded(rank, 1, 1, Reduce::micro);
    for (const Node* node : nodes_of(program, Phase::update, Op::muon)) {
      const Access access = access_of(program, program.find(Phase::update)->graph, *node, node->writes[0]);
      EXPECT_EQ(access.type.shape, slot_of(program, node->writes[0]).type.shape);
      EXPECT_TRUE(access.is_shard);
      ++whole;
    }
  }
  EXPECT_EQ(whole, 2 * 4);  // once per product of a block
}

TEST(ZeroShard, StateIsOfPiecesThatAreAllOfIt) {
  std::map<std::string, int64_t> elements, all;
  for (int32_t rank = 0; rank < 3; ++rank)
    for (const Program program = sharded(rank, 2, 2, Reduce::micro); const Slot& slot : program.slots) {
      if (slot.role != Role::optimizer && slot.role != Role::gradient) continue;
      ASSERT_TRUE(slot.type.layout.is_flat()) << slot.name;
      const int64_t own = own_type(program, slot).shape.elements();
      EXPECT_TRUE(own == 0 || own_begin(program, slot) == elements[slot.name]) << slot.name;
      elements[slot.name] += own;
      all[slot.name] = slot.type.shape.elements();
    }
  EXPECT_EQ(elements, all);
}

TEST(ZeroShard, KeepsGradientsWholeOnlyWhereTheyAreMadeOrAddedUp) {
  const auto is_whole = [](int64_t rounds, int64_t stage, Reduce reduce) {
    const Program program = sharded(1, rounds, stage, reduce);
    return !slot_of(program, program.slot_named("gradient.final_norm.beta")).type.layout.is_flat();
  };
  EXPECT_TRUE(is_whole(1, 1, Reduce::micro));
  EXPECT_FALSE(is_whole(1, 2, Reduce::micro));
  EXPECT_FALSE(is_whole(2, 1, Reduce::micro));
  EXPECT_FALSE(is_whole(2, 2, Reduce::micro));
  EXPECT_TRUE(is_whole(2, 1, Reduce::step));
  EXPECT_TRUE(is_whole(2, 2, Reduce::step));
}

/// The verifier's words about a sharded program in which the first such node of the section is changed.
std::string refused(Phase phase, Op op, const std::function<void(Program& program, Graph& graph, Node& node)>& change) {
  Program program = sharded(1, 2, 1, Reduce::step);
  Graph& graph = program.find(phase)->graph;
  const auto found = std::ranges::find(graph.nodes, op, &Node::op);
  EXPECT_NE(found, graph.nodes.end());
  change(program, graph, *found);
  return refusal(Code::internal, [&] { verify(program, "a_pass"); });
}

TEST(ZeroShard, VerifierRefusesWhatDoesNotFitTheLayouts) {
  using testing::HasSubstr;
  const auto scatter = [](const auto& change) { return refused(Phase::backward, Op::reduce_scatter, change); };
  EXPECT_THAT(scatter([](Program&, Graph&, Node& node) {
                Ints parameters = node.attrs.ints("parameters");
                parameters.pop_back();
                node.attrs.set("parameters", parameters);
              }),
              HasSubstr("gradients for"));
  EXPECT_THAT(scatter([](Program&, Graph&, Node& node) { node.writes.pop_back(); }),
              HasSubstr("has no slot of f32 or of the gradient's type"));
  EXPECT_THAT(scatter([](Program&, Graph&, Node& node) { node.attrs.set("axis", std::string("tensor")); }),
              HasSubstr("it runs along the tensor axis"));
  EXPECT_THAT(scatter([](Program&, Graph&, Node& node) { std::ranges::reverse(node.writes); }),
              HasSubstr("has no slot of f32 or of the gradient's type"));
  EXPECT_THAT(scatter([](Program&, Graph&, Node& node) { node.writes.push_back(node.writes.back()); }), HasSubstr("this rank has"));
  EXPECT_THAT(refused(Phase::update, Op::all_gather,
                      [](Program& program, Graph&, Node& node) {
                        const auto moment = std::ranges::find(program.slots, Role::optimizer, &Slot::role);
                        node.writes[0] = static_cast<SlotId>(moment - program.slots.begin());
                      }),
              HasSubstr("has no place for the other ranks' shards"));
  EXPECT_THAT(refused(Phase::update, Op::gather_squares,
                      [](Program&, Graph&, Node& node) {
                        Ints parameters = node.attrs.ints("parameters");
                        parameters.pop_back();
                        node.attrs.set("parameters", parameters);
                      }),
              HasSubstr("this rank has"));
  const auto load_of = [](Graph& graph, const Node& node) -> Node& { return graph[node.in[0].node]; };
  EXPECT_THAT(refused(Phase::update, Op::adamw,
                      [&](Program&, Graph& graph, Node& node) { load_of(graph, node).out[0].layout[MeshAxis::data].grain = 1; }),
              HasSubstr("output 0 should be"));
  EXPECT_THAT(refused(Phase::update, Op::adamw,
                      [&](Program& program, Graph& graph, Node& node) {
                        Node& load = load_of(graph, node);
                        load.out = {program.slot(load.reads[0]).type};
                      }),
              HasSubstr("its moment1 is"));
}

TEST(ZeroShard, GathersSquaresOnceAndParametersAtTheEnd) {
  const Program program = sharded(2, 2, 2, Reduce::micro);
  EXPECT_EQ(nodes_of(program, Phase::update, Op::gather_squares).size(), 1U);
  EXPECT_TRUE(nodes_of(program, Phase::update, Op::gradient_norm).empty());
  const auto gathers = nodes_of(program, Phase::update, Op::all_gather);
  ASSERT_EQ(gathers.size(), 1U);
  EXPECT_EQ(std::ssize(gathers[0]->writes), std::ranges::count(program.slots, Role::parameter, &Slot::role));
}

}  // namespace
}  // namespace st
