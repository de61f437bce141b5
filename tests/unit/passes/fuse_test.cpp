#include "passes/fuse.h"

#include <cmath>
#include <functional>

#include "models/mlp.h"
#include "passes/for_inference.h"
#include "program_run.h"
#include "random_program.h"
#include "small_program.h"

namespace st {
namespace {

using Formula = std::function<Value(Builder&, Value x)>;

/// y = f(x) stored as an output, from an input x.
Program stored(const Formula& f, const Shape& x) {
  SmallProgram s(1);
  s.program.outputs.push_back({"y", f(s.b, s.b.input("x", DType::f32, x))});
  const std::vector<std::string> outputs = {"y"};
  for_inference(s.program, outputs, false);
  return s.program;
}

/// The program for x [2, 3], fused.
Program fused(const Formula& f) {
  Program program = stored(f, {2, 3});
  fuse(program);
  verify(program, "fuse");
  return program;
}

int64_t linears_of(const Formula& f) { return count_of(fused(f), Op::linear); }

Value weight(Builder& b, const Shape& shape) { return b.parameter("w", shape, {.kind = Init::uniform, .values = {}}); }
Value bias(Builder& b, const Shape& shape) { return b.parameter("b", shape, {.kind = Init::uniform, .values = {}}); }

TEST(Fuse, AProductPlusABiasBecomesLinear) {
  for (const bool transposed : {false, true}) {
    const Program program = fused([&](Builder& b, Value x) {
      return b.add(b.matmul(x, weight(b, transposed ? Shape{4, 3} : Shape{3, 4}), false, transposed), bias(b, {4}));
    });
    EXPECT_EQ(count_of(program, Op::linear), 1);
    EXPECT_EQ(count_of(program, Op::matmul) + count_of(program, Op::add), 0);
    EXPECT_EQ(nodes_of(program, Op::linear).at(0)->attrs.flag("transpose_weight"), transposed);
  }
}

TEST(Fuse, StopsAtABoundaryScope) {
  for (const bool boundary : {true, false}) {
    const auto scoped = [&](Builder& b, Value x) {
      const Value w = weight(b, {3, 4}), v = bias(b, {4});
      b.enter("layer", boundary);
      const Value product = b.matmul(x, w);
      b.leave();
      return b.add(product, v);
    };
    EXPECT_EQ(linears_of(scoped), boundary ? 0 : 1);
  }
}

TEST(Fuse, KeepsAProductThatIsReadElsewhere) {
  const auto read_twice = [](Builder& b, Value x) {
    const Value product = b.matmul(x, weight(b, {3, 4}));
    return b.mul(b.add(product, bias(b, {4})), product);
  };
  EXPECT_EQ(linears_of(read_twice), 0);
}

TEST(Fuse, KeepsAProductThatIsAnOutput) {
  SmallProgram s(1);
  const Value product = s.b.matmul(s.b.input("x", DType::f32, {2, 3}), weight(s.b, {3, 4}));
  s.program.outputs = {{"product", product}, {"sum", s.b.add(product, bias(s.b, {4}))}};
  fuse(s.program);
  EXPECT_EQ(count_of(s.program, Op::linear), 0);
}

TEST(Fuse, TakesOnlyABiasAsLongAsARow) {
  const auto linears = [](const Shape& shape) {
    return linears_of([&](Builder& b, Value x) { return b.add(b.matmul(x, weight(b, {3, 4})), bias(b, shape)); });
  };
  EXPECT_EQ(linears({4}), 1);
  EXPECT_EQ(linears({1}), 0);
  EXPECT_EQ(linears({2, 4}), 0);
  EXPECT_EQ(linears({2, 1}), 0);
}

TEST(Fuse, LeavesTransposedRowsAndBatchedWeightsAlone) {
  EXPECT_EQ(linears_of([](Builder& b, Value x) { return b.add(b.matmul(x, weight(b, {2, 4}), true), bias(b, {4})); }), 0);
  EXPECT_EQ(linears_of([](Builder& b, Value x) { return b.add(b.matmul(x, weight(b, {5, 3, 4})), bias(b, {4})); }), 0);
}

/// The only fused_linear of the forward section.
const Node& fused_node(const Program& program) {
  EXPECT_EQ(count_of(program, Op::fused_linear), 1);
  return *nodes_of(program, Op::fused_linear).at(0);
}

TEST(Fuse, AnActivationAndAResidualJoinTheProductInTheirOrder) {
  const auto joined = [](bool residual_first) {
    return fused([&](Builder& b, Value x) {
      const Value y = b.add(b.matmul(x, weight(b, {3, 3})), bias(b, {3}));
      if (residual_first) return b(Op::silu, {b.add(x, y)});
      return b.add(x, b(Op::silu, {y}));
    });
  };
  const Program both = joined(false), one = joined(true);
  EXPECT_EQ(fused_node(both).attrs.word("activation"), "silu");
  EXPECT_TRUE(fused_node(both).attrs.flag("residual"));
  EXPECT_FALSE(fused_node(both).attrs.flag("pre_activation"));
  EXPECT_EQ(count_of(both, Op::silu) + count_of(both, Op::add), 0);
  EXPECT_EQ(fused_node(one).attrs.word("activation"), "none");
  EXPECT_EQ(count_of(one, Op::silu), 1) << "an activation of a sum is not the product's";
}

TEST(Fuse, KeepsThePreActivationExactlyWhereItIsReadAfterwards) {
  const auto program = [](bool before, bool after) {
    return fused([&](Builder& b, Value x) {
      const Value pre = b.matmul(x, weight(b, {3, 3}));
      const Value early = before ? b(Op::exp, {pre}) : x;
      const Value y = b(Op::gelu, {pre});
      return b.mul(b.mul(y, early), after ? b(Op::exp, {pre}) : x);
    });
  };
  EXPECT_FALSE(fused_node(program(false, false)).attrs.flag("pre_activation"));
  EXPECT_TRUE(fused_node(program(false, true)).attrs.flag("pre_activation"));
  EXPECT_EQ(count_of(program(true, false), Op::fused_linear), 0) << "nothing can be read before it is made";
}

TEST(Fuse, LeavesAResidualAloneThatIsReadElsewhereOrStretches) {
  const auto read_twice = [](Builder& b, Value x) {
    const Value y = b.matmul(x, weight(b, {3, 3}));
    return b.mul(b.add(x, y), y);
  };
  const auto stretched = [](Builder& b, Value x) { return b.add(b.matmul(x, weight(b, {3, 3})), bias(b, {2, 1})); };
  EXPECT_EQ(count_of(fused(read_twice), Op::fused_linear), 0);
  EXPECT_EQ(count_of(fused(stretched), Op::fused_linear), 0);
}

TEST(Fuse, SeesThroughReshapesOfRows) {
  for (const bool keeps_columns : {true, false}) {
    const Program program = fused([&](Builder& b, Value x) {
      const Value y = b.matmul(x, weight(b, {3, 4}));
      return b(Op::relu, {b.reshape(y, keeps_columns ? Shape{1, 2, 4} : Shape{4, 2})});
    });
    EXPECT_EQ(count_of(program, Op::fused_linear), keeps_columns ? 1 : 0);
    EXPECT_EQ(program.sections[0].graph.type(program.outputs[0].value).shape, (keeps_columns ? Shape{1, 2, 4} : Shape{4, 2}));
  }
}

TEST(Fuse, TakesColumnSumsButOfOneColumn) {
  const auto sums = [](int64_t columns, const Ints& axes) {
    const Program program = fused([&](Builder& b, Value x) {
      const Value y = b.matmul(x, weight(b, {3, columns}));
      return b.mul(b.sum(y, axes), b.sum(y, {}));
    });
    return count_of(program, Op::fused_linear);
  };
  EXPECT_EQ(sums(4, {0}), 1);
  EXPECT_EQ(sums(4, {-2}), 1);
  EXPECT_EQ(sums(4, {1}), 0);
  EXPECT_EQ(sums(1, {0}), 0);
}

TEST(Fuse, TakesWhatItCanOfAGptAndAnMlp) {
  const Program gpt = training_program(small_gpt(), 2, 1);
  EXPECT_EQ(count_of(gpt, Op::linear), 2);            // qkv
  EXPECT_EQ(count_of(gpt, Op::fused_linear), 2 * 4);  // projection and contract onto the stream, expand with gelu, and its gradient
  EXPECT_EQ(count_of(gpt, Op::gelu) + count_of(gpt, Op::gelu_backward), 0);
  const auto has_column_sums = [](const Node* node) { return node->attrs.flag("column_sums"); };
  EXPECT_EQ(std::ranges::count_if(nodes_of(gpt, Op::fused_linear), has_column_sums), 2);  // in the gradient through gelu, for expand's bias
  const Program mlp = training_program(build_mlp({.inputs = 3, .hidden = {5, 7}, .outputs = 2, .activation = "relu", .loss = "mse"}), 4, 1);
  EXPECT_EQ(count_of(mlp, Op::fused_linear), 4);  // two layers in each direction, in separate scopes
  EXPECT_EQ(count_of(mlp, Op::relu) + count_of(mlp, Op::relu_backward), 0);
}

// Only one rounding between product and sum may differ: a few ulps of values near 1.
TEST(Fuse, ChangesNumbersByNoMoreThanARounding) {
  const Program whole = stored([](Builder& b, Value x) { return b.add(b.matmul(x, weight(b, {19, 13})), bias(b, {13})); }, {37, 19});
  Program joined = whole;
  fuse(joined);
  ProgramRun apart(whole), together(joined);
  const auto x = some_floats(37 * 19, 3);
  for (ProgramRun* run : {&apart, &together}) {
    run->bind("x", x.data());
    run->run();
  }
  const auto a = apart.floats("output.y"), b = together.floats("output.y");
  ASSERT_EQ(a.size(), 37U * 13U);
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(a[i], b[i], 1e-6);
    sum += std::abs(a[i]);
  }
  EXPECT_GT(sum, 1);
}

}  // namespace
}  // namespace st
