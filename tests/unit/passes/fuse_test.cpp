#include "passes/fuse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "ir/build.h"
#include "ir/verify.h"
#include "models/gpt.h"
#include "models/mlp.h"
#include "passes/for_inference.h"
#include "program_run.h"
#include "random_program.h"

namespace st {
namespace {

int64_t ops_of(const Program& program, Op op) {
  int64_t count = 0;
  for (const Section& section : program.sections)
    for (const Node& node : section.graph.nodes) count += node.op == op;
  return count;
}

/// y = f(x) stored as an output, from an input x [2, 3]; fused.
Program fused(const std::function<Value(Builder&, Value x)>& f) {
  Program program;
  program.sections.push_back({{}, Phase::forward, 0, 0});
  program.batch = 1;
  Builder b(program, 0);
  program.outputs.push_back({"y", f(b, b.input("x", DType::f32, {2, 3}))});
  const std::vector<std::string> outputs = {"y"};
  for_inference(program, outputs, false);
  fuse(program);
  verify(program, "fuse");
  return program;
}

Value weight(Builder& b, const Shape& shape) { return b.parameter("w", shape, {.kind = Init::uniform, .values = {}}); }
Value bias(Builder& b, const Shape& shape) { return b.parameter("b", shape, {.kind = Init::uniform, .values = {}}); }

TEST(Fuse, AProductPlusABiasBecomesLinear) {
  for (const bool transposed : {false, true}) {
    const Program program = fused([&](Builder& b, Value x) {
      return b.add(b.matmul(x, weight(b, transposed ? Shape{4, 3} : Shape{3, 4}), false, transposed), bias(b, {4}));
    });
    EXPECT_EQ(ops_of(program, Op::linear), 1);
    EXPECT_EQ(ops_of(program, Op::matmul) + ops_of(program, Op::add), 0);
    for (const Node& node : program.sections[0].graph.nodes)
      if (node.op == Op::linear) {
        EXPECT_EQ(node.attrs.flag("transpose_weight"), transposed);
      }
  }
}

TEST(Fuse, StopsAtABoundaryScope) {
  for (const bool boundary : {true, false}) {
    const Program program = fused([&](Builder& b, Value x) {
      const Value w = weight(b, {3, 4}), v = bias(b, {4});
      b.enter("layer", boundary);
      const Value product = b.matmul(x, w);
      b.leave();
      return b.add(product, v);
    });
    EXPECT_EQ(ops_of(program, Op::linear), boundary ? 0 : 1);
  }
}

TEST(Fuse, KeepsAProductThatIsReadElsewhere) {
  const Program program = fused([](Builder& b, Value x) {
    const Value product = b.matmul(x, weight(b, {3, 4}));
    return b.mul(b.add(product, bias(b, {4})), product);
  });
  EXPECT_EQ(ops_of(program, Op::linear), 0);
}

TEST(Fuse, KeepsAProductThatIsAnOutput) {
  Program program;
  program.sections.push_back({{}, Phase::forward, 0, 0});
  program.batch = 1;
  Builder b(program, 0);
  const Value product = b.matmul(b.input("x", DType::f32, {2, 3}), weight(b, {3, 4}));
  const Value sum = b.add(product, bias(b, {4}));
  program.outputs = {{"product", product}, {"sum", sum}};
  fuse(program);
  EXPECT_EQ(ops_of(program, Op::linear), 0);
}

TEST(Fuse, TakesOnlyABiasAsLongAsARow) {
  const auto linears = [](const Shape& shape) {
    return ops_of(fused([&](Builder& b, Value x) { return b.add(b.matmul(x, weight(b, {3, 4})), bias(b, shape)); }), Op::linear);
  };
  EXPECT_EQ(linears({4}), 1);
  EXPECT_EQ(linears({1}), 0);
  EXPECT_EQ(linears({2, 4}), 0);
  EXPECT_EQ(linears({2, 1}), 0);
}

TEST(Fuse, LeavesTransposedRowsAndBatchedWeightsAlone) {
  EXPECT_EQ(ops_of(fused([](Builder& b, Value x) { return b.add(b.matmul(x, weight(b, {2, 4}), true), bias(b, {4})); }), Op::linear), 0);
  EXPECT_EQ(ops_of(fused([](Builder& b, Value x) { return b.add(b.matmul(x, weight(b, {5, 3, 4})), bias(b, {4})); }), Op::linear), 0);
}

/// The only fused_linear of the forward section.
const Node& fused_node(const Program& program) {
  const auto& nodes = program.sections[0].graph.nodes;
  EXPECT_EQ(ops_of(program, Op::fused_linear), 1);
  return *std::ranges::find(nodes, Op::fused_linear, &Node::op);
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
  EXPECT_EQ(ops_of(both, Op::silu) + ops_of(both, Op::add), 0);
  EXPECT_EQ(fused_node(one).attrs.word("activation"), "none");
  EXPECT_EQ(ops_of(one, Op::silu), 1) << "an activation of a sum is not the product's";
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
  EXPECT_EQ(ops_of(program(true, false), Op::fused_linear), 0) << "nothing can be read before it is made";
}

TEST(Fuse, LeavesAResidualAloneThatIsReadElsewhereOrStretches) {
  EXPECT_EQ(ops_of(fused([](Builder& b, Value x) {
                     const Value y = b.matmul(x, weight(b, {3, 3}));
                     return b.mul(b.add(x, y), y);
                   }),
                   Op::fused_linear),
            0);
  EXPECT_EQ(ops_of(fused([](Builder& b, Value x) { return b.add(b.matmul(x, weight(b, {3, 3})), bias(b, {2, 1})); }), Op::fused_linear), 0);
}

TEST(Fuse, SeesThroughReshapesOfRows) {
  for (const bool keeps_columns : {true, false}) {
    const Program program = fused([&](Builder& b, Value x) {
      const Value y = b.matmul(x, weight(b, {3, 4}));
      return b(Op::relu, {b.reshape(y, keeps_columns ? Shape{1, 2, 4} : Shape{4, 2})});
    });
    EXPECT_EQ(ops_of(program, Op::fused_linear), keeps_columns ? 1 : 0);
    EXPECT_EQ(program.sections[0].graph.type(program.outputs[0].value).shape, (keeps_columns ? Shape{1, 2, 4} : Shape{4, 2}));
  }
}

TEST(Fuse, TakesColumnSumsButOfOneColumn) {
  const auto sums = [](int64_t columns, const Ints& axes) {
    const Program program = fused([&](Builder& b, Value x) {
      const Value y = b.matmul(x, weight(b, {3, columns}));
      return b.mul(b.sum(y, axes), b.sum(y, {}));
    });
    return ops_of(program, Op::fused_linear);
  };
  EXPECT_EQ(sums(4, {0}), 1);
  EXPECT_EQ(sums(4, {-2}), 1);
  EXPECT_EQ(sums(4, {1}), 0);
  EXPECT_EQ(sums(1, {0}), 0);
}

int64_t count_with_column_sums(const Program& program) {
  int64_t count = 0;
  for (const Section& section : program.sections)
    for (const Node& node : section.graph.nodes) count += node.op == Op::fused_linear && node.attrs.flag("column_sums");
  return count;
}

TEST(Fuse, TakesWhatItCanOfAGptAndAnMlp) {
  const Program gpt = training_program(build_gpt({.layers = 2, .width = 12, .heads = 3, .context = 5, .vocabulary = 17}), 2, 1);
  EXPECT_EQ(ops_of(gpt, Op::linear), 2);            // qkv
  EXPECT_EQ(ops_of(gpt, Op::fused_linear), 2 * 4);  // projection and contract onto the stream, expand with gelu, and its gradient
  EXPECT_EQ(ops_of(gpt, Op::gelu) + ops_of(gpt, Op::gelu_backward), 0);
  EXPECT_EQ(count_with_column_sums(gpt), 2);  // of the gradient through gelu: expand's bias
  const Program mlp = training_program(build_mlp({.inputs = 3, .hidden = {5, 7}, .outputs = 2, .activation = "relu", .loss = "mse"}), 4, 1);
  EXPECT_EQ(ops_of(mlp, Op::fused_linear), 4);  // two layers each way, whose scopes are their own
  EXPECT_EQ(ops_of(mlp, Op::relu) + ops_of(mlp, Op::relu_backward), 0);
}

// One rounding between product and sum is what may differ: some units in the last place of values near 1.
TEST(Fuse, ChangesNumbersByNoMoreThanARounding) {
  const auto build = [](bool fuse_it) {
    Program program;
    program.sections.push_back({{}, Phase::forward, 0, 0});
    program.batch = 1;
    Builder b(program, 0);
    program.outputs.push_back({"y", b.add(b.matmul(b.input("x", DType::f32, {37, 19}), weight(b, {19, 13})), bias(b, {13}))});
    const std::vector<std::string> outputs = {"y"};
    for_inference(program, outputs, false);
    if (fuse_it) fuse(program);
    return program;
  };
  ProgramRun apart(build(false)), together(build(true));
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
