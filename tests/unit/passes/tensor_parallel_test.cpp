// Which products are split among tensor ranks, and the collectives that tensor_parallel() and autodiff() make for them.
#include "passes/tensor_parallel.h"

#include <gmock/gmock.h>

#include "ir/print.h"
#include "ir/verify.h"
#include "models/mlp.h"
#include "passes/dropout.h"
#include "passes/tensor_split.h"
#include "refusal.h"
#include "small_program.h"

namespace st {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = TensorSplit::Kind;

/// Eight rows of sixteen columns, and parameters by name.
struct RowsOfSixteen : SmallProgram {
  Value x = b.input("x", DType::f32, {8, 16});

  Value weight(const std::string& name, int64_t rows, int64_t columns) {
    return b.parameter(name, {rows, columns}, {Init::normal, 0.02, {}});
  }
  Value times(Value a, const std::string& name, int64_t columns) { return b.matmul(a, weight(name, b.shape(a).last(), columns)); }
  Value heads(Value a, int64_t count) { return b.reshape(a, {2, 4, count, 4}); }
  void end(Value y) { program.loss_sum = b.sum(b.mul(y, y), {}); }

  TensorSplit split(int32_t ranks = 2) const { return split_products(program, program.sections[0], ranks); }
  /// In the order of the products.
  std::vector<Kind> kinds(int32_t ranks = 2) const {
    const TensorSplit found = split(ranks);
    std::vector<Kind> all;
    for (size_t n = 0; n < found.kinds.size(); ++n)
      if (is_weight_product(program, program.sections[0].graph, program.sections[0].graph.nodes[n])) all.push_back(found.kinds[n]);
    return all;
  }
  TensorCut cut_of(const std::string& name) const { return split().parameters.at(program.slot_named(name)); }
};

TEST(TensorSplit, PairsTheTwoProductsOfAnMlp) {
  RowsOfSixteen p;
  const Value hidden = p.b(Op::linear, {p.x, p.weight("w1", 16, 24), p.b.parameter("b1", {24}, {})});
  p.end(p.b(Op::linear, {p.b(Op::gelu, {hidden}), p.weight("w2", 24, 16), p.b.parameter("b2", {16}, {})}));
  EXPECT_THAT(p.kinds(), ElementsAre(Kind::columns, Kind::rows));
  EXPECT_EQ(p.cut_of("w1"), (TensorCut{1, {24}}));
  EXPECT_EQ(p.cut_of("b1"), (TensorCut{0, {24}}));
  EXPECT_EQ(p.cut_of("w2"), (TensorCut{0, {24}}));
  EXPECT_EQ(p.split().parameters.size(), 3) << "b2 is added once, to the sum";
}

TEST(TensorSplit, CutsATransposedWeightAlongItsOtherDimension) {
  RowsOfSixteen p;
  const Value hidden = p.b.matmul(p.x, p.weight("w1", 24, 16), false, true);
  p.end(p.b.matmul(hidden, p.weight("w2", 16, 24), false, true));
  EXPECT_EQ(p.cut_of("w1"), (TensorCut{0, {24}}));
  EXPECT_EQ(p.cut_of("w2"), (TensorCut{1, {24}}));
}

TEST(TensorSplit, GivesGateAndUpOneDownProduct) {
  RowsOfSixteen p;
  const Value gate = p.times(p.x, "gate", 24), up = p.times(p.x, "up", 24);
  p.end(p.times(p.b.mul(p.b(Op::silu, {gate}), up), "down", 16));
  EXPECT_THAT(p.kinds(), ElementsAre(Kind::columns, Kind::columns, Kind::rows));
}

/// Four heads of queries in two groups.
struct GroupedAttention : RowsOfSixteen {
  GroupedAttention() {
    const Value q = heads(times(x, "q", 16), 4), k = heads(times(x, "k", 8), 2), v = heads(times(x, "v", 8), 2);
    end(times(b.reshape(b(Op::attention, {q, k, v}), {8, 16}), "o", 16));
  }
};

TEST(TensorSplit, GivesEachRankGroupsOfHeads) {
  const GroupedAttention p;
  EXPECT_THAT(p.kinds(), ElementsAre(Kind::columns, Kind::columns, Kind::columns, Kind::rows));
  EXPECT_EQ(p.cut_of("k"), (TensorCut{1, {8}}));
  EXPECT_EQ(p.cut_of("o"), (TensorCut{0, {16}}));
}

TEST(TensorSplit, TurnsHeadsByRopeOnTheirRank) {
  RowsOfSixteen p;
  const auto turned = [&](const char* name) { return p.b(Op::rope, {p.heads(p.times(p.x, name, 16), 4)}); };
  const Value q = turned("q"), k = turned("k"), v = p.heads(p.times(p.x, "v", 16), 4);
  p.end(p.times(p.b.reshape(p.b(Op::attention, {q, k, v}), {8, 16}), "o", 16));
  EXPECT_THAT(p.kinds(), ElementsAre(Kind::columns, Kind::columns, Kind::columns, Kind::rows));
}

TEST(TensorSplit, CutsEachPartOfAJoinedWeight) {
  RowsOfSixteen p;
  auto parts = p.b.append(Op::split, {p.times(p.x, "qkv", 32)}, {{"axis", int64_t{-1}}, {"sizes", Ints{16, 8, 8}}});
  const Value o = p.b(Op::attention, {p.heads(parts[0], 4), p.heads(parts[1], 2), p.heads(parts[2], 2)});
  p.end(p.times(p.b.reshape(o, {8, 16}), "o", 16));
  EXPECT_THAT(p.kinds(), ElementsAre(Kind::columns, Kind::rows));
  EXPECT_EQ(p.cut_of("qkv"), (TensorCut{1, {16, 8, 8}}));
}

TEST(TensorSplit, LeavesAProductWholeWhoseColumnsAreReadElsewhere) {
  RowsOfSixteen norm, tied;
  const Value columns = norm.times(norm.x, "w1", 24);
  norm.end(norm.times(norm.b(Op::softmax, {columns}), "w2", 16));
  EXPECT_THAT(norm.split().parameters, IsEmpty()) << "softmax over the columns";

  const Value weight = tied.weight("w1", 16, 24);
  const Value pair = tied.times(tied.b.matmul(tied.x, weight), "w2", 16);
  tied.program.loss_sum = tied.b.add(tied.b.sum(pair, {}), tied.b.sum(weight, {}));
  EXPECT_THAT(tied.split().parameters, IsEmpty()) << "a weight with another reader";
}

TEST(TensorSplit, SaysWhatCannotBeCut) {
  RowsOfSixteen mlp;
  mlp.end(mlp.times(mlp.times(mlp.x, "w1", 10), "w2", 16));
  EXPECT_EQ(refusal([&] { mlp.split(4); }),
            "tensor_parallel: 10 columns cannot be cut into 4 equal parts; use a tensor degree that divides them, or 1");
  const GroupedAttention attention;
  EXPECT_THAT(refusal([&] { attention.split(4); }), HasSubstr("2 heads cannot be cut into 4 equal parts"));
  const Program gpt = bind(small_gpt(), 2);
  EXPECT_THAT(refusal([&] { split_products(gpt, gpt.sections[0], 2); }),
              HasSubstr("block.0.attention: 3 heads cannot be cut into 2 equal parts"));
}

TEST(TensorSplit, LeavesAPairWholeWhoseLastWeightIsReadElsewhere) {
  RowsOfSixteen p;
  const Value w2 = p.weight("w2", 24, 16);
  const Value y = p.b.matmul(p.times(p.x, "w1", 24), w2);
  p.program.loss_sum = p.b.add(p.b.sum(y, {}), p.b.sum(p.b.mul(w2, w2), {}));
  EXPECT_THAT(p.split().parameters, IsEmpty());
}

TEST(TensorSplit, RefusesNoColumnsThatStayWhole) {
  RowsOfSixteen p;
  const Value y = p.b.reshape(p.times(p.x, "w1", 12), {8, 3, 4});
  p.program.loss_sum = p.b.sum(p.b(Op::softmax, {y}), {});
  EXPECT_THAT(p.split().parameters, IsEmpty());
}

TEST(TensorSplit, LeavesPairsWholeThatCutOneWeightInTwoWays) {
  RowsOfSixteen p;
  const Value w2 = p.weight("w2", 16, 16);
  const Value a = p.b.matmul(p.times(p.x, "a", 16), w2);
  const Value c = p.b.matmul(p.times(p.x, "c", 16), w2, false, true);
  p.end(p.b.add(a, c));
  EXPECT_THAT(p.split().parameters, IsEmpty());
}

// --- the pass

constexpr int64_t kLayers = 3;

TEST(TensorParallel, TakesANormOfAVectorWhole) {
  RowsOfSixteen p;
  const auto vector = [&](const char* name) { return p.b.parameter(name, {16}, {Init::normal, 1, {}}); };
  const Value normed = p.b(Op::layer_norm, {vector("v"), vector("gamma"), vector("beta")});
  p.end(p.b.add(p.times(p.times(p.x, "w1", 24), "w2", 16), normed));
  p.program.loss_count = p.b.fill({}, 1);
  p.program.mesh.tensor = 2;
  tensor_parallel(p.program);
  verify(p.program, "tensor_parallel");
}

/// One rank's gradients of a GPT with `tokens` rows.
Program split_gpt(int32_t ranks, int32_t rank, int64_t tokens) {
  Program program = bind(build_gpt({.layers = kLayers, .width = 16, .heads = 4, .context = tokens, .vocabulary = 20}), 1);
  set_dropout(program, 0, 0);
  program.mesh.tensor = ranks;
  program.tensor_rank = rank;
  tensor_parallel(program);
  verify(program, "tensor_parallel");
  program = with_backward(std::move(program));
  end_tensor_parallel(program);
  verify(program, "end_tensor_parallel");
  return program;
}

/// Nodes of this op in one scope and the scopes in it.
int64_t count_in(const Program& program, Phase phase, const std::string& scope, Op op) {
  return std::ranges::count_if(nodes_of(program, phase, op), [&](const Node* node) {
    const std::string& name = program.regions[static_cast<size_t>(node->region)].name;
    return name == scope || name.starts_with(scope + ".");
  });
}

TEST(TensorParallel, GathersAndScattersRowsTwiceInABlock) {
  for (const int32_t ranks : {2, 4}) {
    const Program program = split_gpt(ranks, ranks - 1, 8);
    const auto count = [&](Phase phase, Op op) { return count_in(program, phase, "block.1", op); };
    EXPECT_EQ(count(Phase::forward, Op::tensor_gather), 2);
    EXPECT_EQ(count(Phase::forward, Op::tensor_scatter), 2);
    EXPECT_EQ(count(Phase::forward, Op::tensor_sum), 0);
    EXPECT_EQ(count(Phase::backward, Op::tensor_scatter), 2);
    EXPECT_EQ(count(Phase::backward, Op::tensor_gather), 2 + 2) << "two gradients, and the rows again for the gradients of two weights";
    EXPECT_EQ(count(Phase::backward, Op::tensor_sum), 6) << "gradients of two norms and of two biases";
    EXPECT_EQ(count_of(program, Op::tensor_share), 0);
  }
}

TEST(TensorParallel, SumsRowsThatDoNotDivide) {
  const Program program = split_gpt(2, 0, 7);
  const auto count = [&](Phase phase, Op op) { return count_in(program, phase, "block.1", op); };
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    EXPECT_EQ(count(phase, Op::tensor_gather), 0);
    EXPECT_EQ(count(phase, Op::tensor_scatter), 0);
    EXPECT_EQ(count(phase, Op::tensor_sum), 2);
  }
}

/// One rank's program with its backward section, verified.
Program split_and_differentiated(RowsOfSixteen& p, int32_t ranks) {
  p.program.loss_count = p.b.fill({}, 1);
  p.program.mesh.tensor = ranks;
  p.program.tensor_rank = ranks - 1;
  tensor_parallel(p.program);
  verify(p.program, "tensor_parallel");
  autodiff(p.program);
  end_tensor_parallel(p.program);
  verify(p.program, "end_tensor_parallel");
  return p.program;
}

TEST(TensorParallel, KeepsRowsFromPairToPair) {
  RowsOfSixteen p;
  const auto pair = [&](Value x, const char* first, const char* second) {
    return p.times(p.b(Op::relu, {p.times(x, first, 24)}), second, 16);
  };
  p.end(pair(p.b(Op::relu, {pair(p.x, "w1", "w2")}), "w3", "w4"));
  EXPECT_THAT(p.kinds(), ElementsAre(Kind::columns, Kind::rows, Kind::columns, Kind::rows));
  const Program program = split_and_differentiated(p, 2);
  EXPECT_EQ(nodes_of(program, Phase::forward, Op::tensor_scatter).size(), 2U);
  const auto relus = nodes_of(program, Phase::forward, Op::relu);
  ASSERT_EQ(relus.size(), 3U);
  EXPECT_EQ(relus[0]->out[0].shape, Shape({8, 12})) << "columns";
  EXPECT_EQ(relus[1]->out[0].shape, Shape({4, 16})) << "rows";
}

TEST(TensorParallel, KnowsTheCutOfOneHeadOnEachRank) {
  RowsOfSixteen p;
  const auto turned = [&](const char* name) { return p.b(Op::rope, {p.heads(p.times(p.x, name, 16), 4)}); };
  const Value o = p.b(Op::attention, {turned("q"), turned("k"), p.heads(p.times(p.x, "v", 16), 4)});
  p.end(p.times(p.b.reshape(o, {8, 16}), "o", 16));
  const Program program = split_and_differentiated(p, 4);
  EXPECT_EQ(nodes_of(program, Phase::forward, Op::attention).at(0)->out[0].shape, Shape({2, 4, 1, 4}));
}

TEST(TensorParallel, CutsLowCopiesOfWeightsAndFrozenOnes) {
  RowsOfSixteen p;
  const auto low = [&](Value v) { return p.b.as(v, DType::bf16); };
  const Value hidden = p.b(Op::gelu, {p.b.matmul(low(p.x), low(p.weight("w1", 16, 24)))});
  p.end(p.b.as(p.b.matmul(hidden, low(p.weight("w2", 24, 16))), DType::f32));
  p.program.slots[static_cast<size_t>(p.program.slot_named("w1"))].trainable = false;
  const Program program = split_and_differentiated(p, 2);
  const auto scatters = nodes_of(program, Phase::forward, Op::tensor_scatter);
  ASSERT_EQ(scatters.size(), 1U);
  EXPECT_EQ(scatters[0]->out[0].dtype, DType::f32) << "sums over the ranks are not of rounded terms";
}

TEST(TensorParallel, TakesOperandsOfEveryShapeBetweenPairs) {
  RowsOfSixteen p;
  const auto ones = [&](const char* name, const Shape& shape) { return p.b.parameter(name, shape, {Init::ones, 1, {}}); };
  const Value y = p.times(p.b(Op::gelu, {p.times(p.x, "w1", 24)}), "w2", 16);
  const Value column = p.b.input("column", DType::f32, {8, 1});
  Value z = p.b.add(p.b.mul(p.b.mul(p.b.fill({}, 2), y), column), ones("row", {1, 16}));
  z = p.b.add(p.b.reshape(p.b(Op::softmax, {z}), {2, 4, 16}), ones("positions", {4, 16}));
  z = p.b.add(z, ones("whole", {2, 4, 16}));
  p.end(p.times(p.b(Op::silu, {p.times(z, "w3", 24)}), "w4", 16));
  const Program program = split_and_differentiated(p, 2);
  EXPECT_EQ(nodes_of(program, Phase::forward, Op::tensor_scatter).size(), 2U);
}

/// Rows that divide, and rows that do not.
TEST(TensorParallel, DifferentiatesTheBuiltinPerceptron) {
  for (const char* loss : {"mse", "cross_entropy"})
    for (const int64_t batch : {4, 3}) {
      Program program = bind(build_mlp({.inputs = 6, .hidden = {8, 8, 8}, .outputs = 4, .loss = loss}), batch);
      program.mesh.tensor = 2;
      program.tensor_rank = 1;
      tensor_parallel(program);
      verify(program, "tensor_parallel");
      program = with_backward(std::move(program));
      end_tensor_parallel(program);
      verify(program, "end_tensor_parallel");
      EXPECT_GT(count_of(program, Op::tensor_scatter) + count_of(program, Op::tensor_sum), 0) << loss << ", batch " << batch;
    }
}

TEST(TensorParallel, LeavesOneRankAsItWas) {
  const Program before = bind(small_gpt(), 2);
  Program after = before;
  tensor_parallel(after);
  end_tensor_parallel(after);
  EXPECT_EQ(print(after), print(before));
}

TEST(TensorParallel, GivesParametersTheShapesOfTheirPieces) {
  const Program program = split_gpt(2, 1, 8);
  const Slot& qkv = program.slot(program.slot_named("block.0.attention.qkv.weight"));
  EXPECT_EQ(qkv.type.shape, Shape({16, 24}));
  EXPECT_EQ(qkv.piece, (ParameterPiece{.whole = {16, 48}, .dimension = 1, .segments = {16, 16, 16}, .rank = 1, .ranks = 2}));
  const Slot& projection = program.slot(program.slot_named("block.0.attention.projection.weight"));
  EXPECT_EQ(projection.type.shape, Shape({8, 16}));
  EXPECT_EQ(projection.piece, (ParameterPiece{.whole = {16, 16}, .dimension = 0, .segments = {16}, .rank = 1, .ranks = 2}));
  EXPECT_FALSE(program.slot(program.slot_named("block.0.attention.projection.bias")).piece.is_cut());
}

}  // namespace
}  // namespace st
