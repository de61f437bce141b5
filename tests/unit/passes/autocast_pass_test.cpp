#include "passes/autocast.h"

#include <functional>

#include "ir/print.h"
#include "passes/copied_weights.h"
#include "passes/dropout.h"
#include "passes/fuse.h"
#include "passes/scope_patterns.h"
#include "refusal.h"
#include "small_program.h"
#include "small_stack.h"

namespace st {
namespace {

/// A gpt's program with backward, made by the recipe's passes.
Program cast_gpt(DType low, DType residual = DType::f32) {
  Program program = bind(small_gpt(), 2);
  set_dropout(program, 0, 0);
  autocast(program, low, When::every, {}, residual);
  verify(program, "autocast");
  return with_backward(std::move(program));
}

void for_each(const Program& program, const std::function<void(const Graph&, const Node&)>& body) {
  for (const Section& section : program.sections)
    for (const Node& node : section.graph.nodes) body(section.graph, node);
}

/// A forward section over inputs "x", "w" and "r", and a parameter "b"; the results are its outputs.
struct Small : SmallProgram {
  Small() : SmallProgram(2) {}
  Value x = b.input("x", DType::f32, {2, 3}), w = b.input("w", DType::f32, {3, 3}), r = b.input("r", DType::f32, {2, 3});
  Value bias = b.parameter("b", {3}, {});

  /// Makes y an output, since outputs count as uses, and casts the program.
  const Program& cast(Value y, DType residual = DType::f32) {
    program.outputs = {{"y", y}};
    autocast(program, DType::bf16, When::every, {}, residual);
    verify(program, "autocast");
    EXPECT_EQ(type_of_output(), DType::f32);
    return program;
  }
  DType type_of_output() const { return program.sections[0].graph.type(program.outputs[0].value).dtype; }
  /// The dtype of the first output of the only node of this op.
  DType type_of(Op op) const { return nodes_of(program, op).at(0)->out[0].dtype; }
};

TEST(Autocast, ProductsAndAttentionTakeSixteenBitsInBothDirections) {
  for (const DType low : {DType::bf16, DType::f16}) {
    int products = 0, attentions = 0;
    for_each(cast_gpt(low), [&](const Graph& graph, const Node& node) {
      const bool is_product = node.op == Op::matmul || node.op == Op::linear;
      const bool is_attention = node.op == Op::attention || node.op == Op::attention_backward;
      products += is_product, attentions += is_attention;
      if (is_product || is_attention) {
        EXPECT_EQ(graph.type(node.in[0]).dtype, low);
        EXPECT_EQ(graph.type(node.in[1]).dtype, low);
      }
    });
    EXPECT_EQ(products, 3 * (2 * 4 + 1)) << "each forward product and its two gradients";
    EXPECT_EQ(attentions, 2 * 2);
  }
}

TEST(Autocast, NormsLossesAndTheResidualStreamStayFp32) {
  int seen = 0;
  for_each(cast_gpt(DType::bf16), [&](const Graph& graph, const Node& node) {
    switch (node.op) {
      case Op::layer_norm:
      case Op::layer_norm_backward:
      case Op::cross_entropy:
      case Op::cross_entropy_backward:
      case Op::embedding:
        ++seen;
        EXPECT_EQ(graph.type(node.in[0]).dtype, DType::f32) << name_of(node.op);
        EXPECT_EQ(node.out[0].dtype, node.op == Op::cross_entropy ? DType::f64 : DType::f32) << name_of(node.op);
        break;
      default:
        break;
    }
  });
  EXPECT_EQ(seen, 2 * 5 + 2 + 1);
}

TEST(Autocast, AResidualStreamOfSixteenBitsLeavesStatisticsScalesAndLossInFp32) {
  for (const DType low : {DType::bf16, DType::f16}) {
    int norms = 0, embeddings = 0, sums = 0;
    for_each(cast_gpt(low, low), [&](const Graph& graph, const Node& node) {
      const auto in = [&](size_t i) { return graph.type(node.in[i]).dtype; };
      const bool is_norm = node.op == Op::layer_norm, is_norm_gradient = node.op == Op::layer_norm_backward;
      if (is_norm || is_norm_gradient) {
        ++norms;
        EXPECT_EQ(in(0), low);
        EXPECT_EQ(in(1), DType::f32) << "gamma";
        EXPECT_EQ(node.out[0].dtype, low);
        EXPECT_EQ(node.out[1].dtype, DType::f32) << (is_norm ? "mean" : "gamma's gradient");
      } else if (node.op == Op::embedding) {
        ++embeddings;
        EXPECT_EQ(in(0), low) << "the working copy";
      } else if (node.op == Op::embedding_backward) {
        ++embeddings;
        EXPECT_EQ(in(1), DType::f32) << "rows are added in fp32";
      } else if (node.op == Op::add && node.out[0].shape.rank() == 2 && node.out[0].shape[0] > 2) {
        ++sums;
        EXPECT_EQ(node.out[0].dtype, low);
      } else if (node.op == Op::cross_entropy) {
        EXPECT_EQ(in(0), DType::f32);
      }
    });
    EXPECT_EQ(norms, 2 * 5);
    EXPECT_EQ(embeddings, 2);
    EXPECT_GT(sums, 2 * (2 + 2)) << "residuals and their gradients";
  }
}

TEST(Autocast, WithASixteenBitResidualATiedWeightIsReadOnceForAllScopes) {
  const Program program = cast_gpt(DType::bf16, DType::bf16);
  const SlotId weight = program.slot_named("token_embedding.weight");
  int loads = 0;
  for_each(program, [&](const Graph&, const Node& node) { loads += node.op == Op::load && node.reads[0] == weight; });
  EXPECT_EQ(loads, 1);
  EXPECT_TRUE(copied_weights(program)[static_cast<size_t>(weight)]) << "its master may lie in shards";
}

TEST(Autocast, WithASixteenBitResidualNormsTakeXAsItIs) {
  const auto norm = [](Small& s, Value x) { return s.b(Op::rms_norm, {x, s.bias}); };
  Small low, wide, mixed;
  low.cast(low.b.matmul(norm(low, low.b.matmul(low.x, low.w)), low.w), DType::bf16);
  EXPECT_EQ(low.type_of(Op::rms_norm), DType::bf16);
  wide.cast(wide.b.matmul(norm(wide, wide.x), wide.w), DType::bf16);
  EXPECT_EQ(wide.type_of(Op::rms_norm), DType::f32) << "an input of the model";
  mixed.cast(mixed.b.matmul(mixed.b.mul(mixed.b.matmul(mixed.x, mixed.w), mixed.bias), mixed.w), DType::bf16);
  EXPECT_EQ(mixed.type_of(Op::mul), DType::bf16) << "a parameter takes the type of its other operand";
}

TEST(Autocast, AResidualOfAnotherTypeIsRefused) {
  Program program = bind(small_gpt(), 2);
  EXPECT_TRUE(refuses({"residual must be f32 or bf16, got f16"}, [&] { autocast(program, DType::bf16, When::every, {}, DType::f16); }));
}

TEST(Autocast, ParametersGradientsAndOutputsKeepTheirTypes) {
  const Program program = cast_gpt(DType::bf16, DType::bf16);
  int gradients = 0;
  for (const Slot& slot : program.slots) {
    gradients += slot.role == Role::gradient;
    if (slot.role == Role::parameter || slot.role == Role::gradient) {
      EXPECT_EQ(slot.type.dtype, DType::f32) << slot.name;
    }
  }
  EXPECT_GT(gradients, 20);
  for (const Output& output : program.outputs) EXPECT_EQ(program.find(Phase::forward)->graph.type(output.value).dtype, DType::f32);
}

TEST(Autocast, RoundsNoWeightGradient) {
  const Program program = cast_gpt(DType::bf16, DType::bf16);
  const Graph& backward = program.find(Phase::backward)->graph;
  int weights = 0;
  for (const Node* store : nodes_of(backward, Op::store)) {
    const Slot& slot = slot_of(program, store->writes[0]);
    const Node& source = backward[store->in[0].node];
    if (slot.role != Role::gradient || slot.type.shape.rank() != 2 || source.op != Op::matmul) continue;
    ++weights;
    EXPECT_EQ(source.attrs.word("result"), "f32") << slot.name;
  }
  EXPECT_EQ(weights, 2 * 4 + 1);
}

TEST(Autocast, EachScopeCastsATiedWeightForItself) {
  const Program program = cast_gpt(DType::bf16);
  EXPECT_GE(program.slot_named("gradient.token_embedding.weight"), 0);
  EXPECT_GE(program.slot_named("gradient.token_embedding.weight.use1"), 0) << "the head's use is a gradient of its own";
}

TEST(Autocast, WorkingCopiesAreMadeOncePerMicroBatchOrOncePerStep) {
  for (const When when : {When::every, When::first}) {
    Program program = bind(small_gpt(), 2);
    autocast(program, DType::bf16, when);
    program = with_backward(std::move(program), 3);
    int copies = 0, stores = 0, casts = 0;
    for (const Slot& slot : program.slots) {
      copies += slot.role == Role::working;
      if (slot.role != Role::working) continue;
      EXPECT_EQ(slot.name, "bf16." + program.slot(slot.of).name);
      EXPECT_EQ(slot.type.dtype, DType::bf16);
    }
    for_each(program, [&](const Graph& graph, const Node& node) {
      const bool casts_parameter = node.op == Op::cast && program.parameter_of(graph[node.in[0].node]) >= 0;
      const bool stores_copy = node.op == Op::store && program.slot(node.writes[0]).role == Role::working;
      casts += casts_parameter, stores += stores_copy;
      if (casts_parameter || stores_copy) {
        EXPECT_EQ(node.when, when);
      }
    });
    EXPECT_EQ(copies, 2 * (4 + 2) + 1) << "weights, and biases of 16-bit products";
    EXPECT_EQ(stores, copies);
    EXPECT_EQ(casts, copies);
  }
}

TEST(Autocast, AScopeThatIsToBeWideComputesInFp32) {
  const auto cast = [](std::string_view wide, DType residual = DType::f32) {
    Program program = bind(small_gpt(), 2);
    autocast(program, DType::bf16, When::first, scopes_matching(program, wide, ScopeKind::any, "test"), residual);
    verify(program, "autocast");
    return with_backward(std::move(program));
  };
  const auto low_values = [](const Program& program, std::string_view scope) {
    int count = 0;
    for_each(program, [&](const Graph&, const Node& node) {
      if (!program.regions[static_cast<size_t>(node.region)].name.starts_with(scope)) return;
      for (const Type& out : node.out) count += out.dtype == DType::bf16;
    });
    return count;
  };
  const Program one = cast("block.0"), part = cast("block.?.mlp"), all = cast("*");
  EXPECT_EQ(low_values(one, "block.0"), 0) << print(one);
  EXPECT_GT(low_values(one, "block.1"), 0);
  EXPECT_GT(low_values(part, "block.0"), 0);
  EXPECT_EQ(low_values(part, "block.0.mlp"), 0) << print(part);
  EXPECT_EQ(low_values(all, ""), 0) << print(all);
  EXPECT_EQ(low_values(cast("*", DType::bf16), ""), 0) << "the residual stream too";
}

TEST(Autocast, Fp32ChangesNothing) {
  const Program before = bind(small_gpt(), 2);
  Program after = before;
  autocast(after, DType::f32);
  EXPECT_EQ(print(after), print(before));
}

TEST(Autocast, OtherTypesChangeNothing) {
  SmallProgram s(2);
  const Value x = s.b.input("x", DType::f64, {2, 3}), h = s.b.input("h", DType::bf16, {3, 3});
  s.program.outputs = {{"y", s.b.matmul(x, x, false, true)}, {"z", s.b.matmul(h, h)}};
  Program after = s.program;
  autocast(after, DType::bf16);
  EXPECT_EQ(print(after), print(s.program));
}

TEST(Autocast, AProductThatFp32WaitsForIsNotRounded) {
  Small sum, norm, again, output;
  sum.cast(sum.b.add(sum.r, sum.b.matmul(sum.x, sum.w)));
  EXPECT_EQ(sum.type_of(Op::matmul), DType::f32);
  EXPECT_EQ(sum.type_of(Op::add), DType::f32);

  norm.cast(norm.b(Op::softmax, {norm.b.scale(norm.b.matmul(norm.x, norm.w), 2)}));
  EXPECT_EQ(norm.type_of(Op::matmul), DType::f32) << "seen through what stands between";

  const Value h = again.b.matmul(again.x, again.w);
  again.program.outputs = {};
  again.cast(again.b.matmul(again.b(Op::relu, {h}), again.w));
  EXPECT_EQ(again.type_of(Op::matmul), DType::bf16) << "the first";
  EXPECT_EQ(again.type_of(Op::relu), DType::bf16);

  output.cast(output.b.matmul(output.x, output.w));
  EXPECT_EQ(output.type_of(Op::matmul), DType::f32);
  EXPECT_EQ(count_of(output.program, Op::cast), 2) << "of the operands alone";
}

TEST(Autocast, AnyNumberOfOpsMayStandBehindAProduct) {
  on_a_small_stack([] {
    Small s;
    Value y = s.b.matmul(s.x, s.w);
    for (int i = 0; i < 12'000; ++i) y = s.b(Op::relu, {y});
    s.cast(y);
    EXPECT_EQ(count_of(s.program, Op::relu), 12'000);
  });
}

TEST(Autocast, ABiasIsOfItsProductsType) {
  Small low, wide;
  low.cast(low.b.matmul(low.b.add(low.b.matmul(low.x, low.w), low.bias), low.w));
  EXPECT_EQ(low.type_of(Op::add), DType::bf16);
  wide.cast(wide.b.add(wide.r, wide.b.add(wide.b.matmul(wide.x, wide.w), wide.bias)));
  EXPECT_EQ(wide.type_of(Op::add), DType::f32);
  EXPECT_EQ(count_of(wide.program, Op::cast), 2);
}

TEST(Autocast, WhatNeedsRangeOrDigitsGetsFp32) {
  for (const Op op : {Op::exp, Op::softmax, Op::log_softmax, Op::sqrt, Op::log}) {
    Small s;
    const Value h = s.b(Op::relu, {s.b.matmul(s.x, s.w)});
    s.cast(s.b.add(s.b(op, {h}), s.b.matmul(h, s.w)));
    EXPECT_EQ(s.type_of(op), DType::f32) << name_of(op);
    EXPECT_EQ(s.type_of(Op::relu), DType::bf16) << "a product reads it too";
  }
}

TEST(Autocast, FusesWithWhatStandsBehindAProduct) {
  for (const DType residual : {DType::f32, DType::bf16}) {
    Program program = cast_gpt(DType::bf16, residual);
    fuse(program);
    verify(program, "fuse");
    int residuals = 0, activations = 0;
    for (const Node* node : nodes_of(program, Op::fused_linear)) {
      residuals += node->attrs.flag("residual") && node->out[0].dtype == residual;
      activations += node->attrs.word("activation") == "gelu_tanh" && node->out[0].dtype == DType::bf16;
    }
    EXPECT_EQ(residuals, 2 * 2) << name_of(residual);
    EXPECT_EQ(activations, 2 * 2) << "forward and backward";
  }
}

}  // namespace
}  // namespace st
