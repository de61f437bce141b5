#include "ir/rules.h"
#include "refusal.h"

namespace st {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr Mesh kTwo{.data = 2, .tensor = 1, .stage = 1};

const Layout kWhole{};
const Layout kPartial = Layout::partial(MeshAxis::data);
Layout cut(int32_t dimension) { return Layout::sharded(MeshAxis::data, dimension); }
Layout flat(int32_t turn, int64_t grain) {
  Layout layout;
  layout[MeshAxis::data] = {.kind = AxisLayout::Kind::flat, .where = turn, .grain = grain};
  return layout;
}

Type f32(const Shape& shape, const Layout& layout = {}) { return {DType::f32, shape, layout}; }
Type of(DType dtype, const Shape& shape, const Layout& layout = {}) { return {dtype, shape, layout}; }

std::vector<Layout> infer(Op op, const std::vector<Type>& in, const Attrs& attrs = {}, const Mesh& mesh = kTwo) {
  const Attrs made = make_attrs(op, attrs);
  std::vector<Layout> layouts;
  for (const auto& type : st::infer({.op = op, .in = in, .attrs = made}, mesh)) layouts.push_back(type.layout);
  return layouts;
}

std::string refused(Op op, const std::vector<Type>& in, const Attrs& attrs = {}) {
  return refusal([&] { infer(op, in, attrs); });
}

using Layouts = std::vector<Layout>;

TEST(LayoutRules, ASumOfMismatchedLayoutsIsRefused) {
  EXPECT_EQ(refused(Op::add, {f32({4, 3}, cut(0)), f32({4, 3})}),
            "add: layouts do not fit along the data axis: a is f32[4, 3]{data:sharded(0)}, b is f32[4, 3] replicated; operands must have "
            "the same layout; gather one, or slice the other");
  EXPECT_THAT(refused(Op::add, {f32({4, 4}, cut(0)), f32({4, 4}, cut(1))}), HasSubstr("must have the same layout"));
  EXPECT_THAT(refused(Op::add, {f32({4}, kPartial), f32({4})}), HasSubstr("would count once per rank"));
  EXPECT_THAT(refused(Op::sub, {f32({4}), f32({4}, kPartial)}), HasSubstr("would count once per rank"));
  EXPECT_THAT(refused(Op::add, {f32({4}, kPartial), f32({4}, cut(0))}), HasSubstr("sum the partial one over the ranks first"));
}

TEST(LayoutRules, SumsOfEqualLayoutsKeepThem) {
  for (const Layout& layout : {kWhole, kPartial, cut(0), flat(1, 64)})
    EXPECT_EQ(infer(Op::add, {f32({4}, layout), f32({4}, layout)}), Layouts{layout});
}

TEST(LayoutRules, AnAxisOfOneRankIsReplicatedByDefinition) {
  EXPECT_EQ(infer(Op::add, {f32({4}, cut(0)), f32({4})}, {}, Mesh{}), Layouts{kWhole});
}

TEST(LayoutRules, TheAxesOfTheMeshAreJudgedApart) {
  const Mesh mesh{.data = 2, .tensor = 2, .stage = 1};
  Layout both = cut(0);
  both[MeshAxis::tensor] = Layout::sharded(MeshAxis::tensor, 1)[MeshAxis::tensor];
  Layout out = cut(0);
  out[MeshAxis::tensor].kind = AxisLayout::Kind::partial;
  // x is sharded by samples over data and by columns over tensor, the weight by rows over tensor: a partial sum over tensor.
  EXPECT_EQ(infer(Op::matmul, {f32({4, 3}, both), f32({3, 5}, Layout::sharded(MeshAxis::tensor, 0))}, {}, mesh), Layouts{out});
}

TEST(LayoutRules, AStretchedOperandMeetsASlice) {
  EXPECT_EQ(infer(Op::mul, {f32({4, 3}, cut(0)), f32({3})}), Layouts{cut(0)});
  EXPECT_EQ(infer(Op::mul, {f32({3}), f32({4, 3}, cut(0))}), Layouts{cut(0)});
  EXPECT_EQ(infer(Op::add, {f32({4, 3}, cut(0)), f32({1, 3})}), Layouts{cut(0)});
  EXPECT_EQ(infer(Op::add, {f32({2, 4, 1}), f32({3}, cut(0))}), Layouts{cut(2)});
  EXPECT_THAT(refused(Op::mul, {f32({4, 3}, cut(1)), f32({3})}), HasSubstr("must have the same layout"));
}

TEST(LayoutRules, FlatPiecesTakeElementwiseOpsAndScalars) {
  EXPECT_EQ(infer(Op::mul, {f32({9}, flat(0, 7)), f32({})}), Layouts{flat(0, 7)});
  EXPECT_THAT(refused(Op::add, {f32({9}, flat(0, 7)), f32({9}, flat(0, 16))}), HasSubstr("must have the same layout"));
  EXPECT_THAT(refused(Op::add, {f32({9}, flat(0, 7)), f32({9})}), HasSubstr("must have the same layout"));
  EXPECT_THAT(refused(Op::sum, {f32({9}, flat(0, 7))}), HasSubstr("gathered first"));
  EXPECT_THAT(refused(Op::reshape, {f32({9}, flat(0, 7))}, {{"shape", Ints{3, 3}}}), HasSubstr("gathered first"));
  EXPECT_EQ(infer(Op::gradient_squares, {f32({9}, flat(0, 7)), f32({4}, flat(1, 7))}), Layouts{cut(0)});
  EXPECT_EQ(infer(Op::gradient_squares, {f32({9})}), Layouts{kWhole});
  EXPECT_THAT(refused(Op::gradient_squares, {f32({9}, kPartial)}), HasSubstr("summed over the ranks first"));
  EXPECT_EQ(infer(Op::gradient_norm, {f32({9}, flat(0, 7)), f32({4}, cut(0))}), (Layouts{kWhole, kWhole}));
}

TEST(LayoutRules, ProductsAndScalesArePartialInOneOperand) {
  EXPECT_EQ(infer(Op::mul, {f32({4}, kPartial), f32({4})}), Layouts{kPartial});
  EXPECT_EQ(infer(Op::mul, {f32({4}), f32({4}, kPartial)}), Layouts{kPartial});
  EXPECT_THAT(refused(Op::mul, {f32({4}, kPartial), f32({4}, kPartial)}), HasSubstr("summed over the ranks first"));
  EXPECT_EQ(infer(Op::div, {f32({4}, kPartial), f32({4})}), Layouts{kPartial});
  EXPECT_THAT(refused(Op::div, {f32({4}), f32({4}, kPartial)}), HasSubstr("summed over the ranks first"));
  EXPECT_EQ(infer(Op::affine, {f32({4}, kPartial)}, {{"scale", 2}}), Layouts{kPartial});
  EXPECT_THAT(refused(Op::affine, {f32({4}, kPartial)}, {{"shift", 2}}), HasSubstr("shift would count once per rank"));
  EXPECT_EQ(infer(Op::neg, {f32({4}, kPartial)}), Layouts{kPartial});
  EXPECT_EQ(infer(Op::cast, {f32({4}, kPartial)}, {{"dtype", "bf16"}}), Layouts{kPartial});
  EXPECT_THAT(refused(Op::cast, {f32({4}, kPartial)}, {{"dtype", "i32"}}), HasSubstr("summed over the ranks first"));
  EXPECT_THAT(refused(Op::exp, {f32({4}, kPartial)}), HasSubstr("summed over the ranks first"));
}

TEST(LayoutRules, DropoutCutsWholeSamplesOnly) {
  const Type counters = of(DType::i64, {2});
  EXPECT_EQ(infer(Op::dropout, {f32({4, 2}, cut(0)), counters}, {{"rate", 0.5}}), Layouts{cut(0)});
  EXPECT_THAT(refused(Op::dropout, {f32({4, 2}, cut(1)), counters}, {{"rate", 0.5}}), HasSubstr("only whole samples"));
}

TEST(MatmulLayout, SamplesColumnsAndHeadsPassThrough) {
  EXPECT_EQ(infer(Op::matmul, {f32({4, 3}, cut(0)), f32({3, 5})}), Layouts{cut(0)});
  EXPECT_EQ(infer(Op::matmul, {f32({2, 4, 3}, cut(0)), f32({3, 5})}), Layouts{cut(0)});
  EXPECT_EQ(infer(Op::matmul, {f32({4, 3}), f32({3, 5}, cut(1))}), Layouts{cut(1)});
  EXPECT_EQ(infer(Op::matmul, {f32({4, 3}), f32({5, 3}, cut(0))}, {{"transpose_b", true}}), Layouts{cut(1)});
  EXPECT_EQ(infer(Op::matmul, {f32({2, 4, 3}, cut(0)), f32({2, 3, 5}, cut(0))}), Layouts{cut(0)});
  EXPECT_EQ(infer(Op::matmul, {f32({7, 2, 4, 3}, cut(1)), f32({2, 3, 5}, cut(0))}), Layouts{cut(1)});
}

TEST(MatmulLayout, ACutInnerDimensionGivesPartialSums) {
  EXPECT_EQ(infer(Op::matmul, {f32({4, 3}, cut(1)), f32({3, 5}, cut(0))}), Layouts{kPartial});
  // The gradient of a weight over sharded samples.
  EXPECT_EQ(infer(Op::matmul, {f32({8, 3}, cut(0)), f32({8, 5}, cut(0))}, {{"transpose_a", true}}), Layouts{kPartial});
  EXPECT_EQ(infer(Op::matmul, {f32({4, 3}, kPartial), f32({3, 5})}), Layouts{kPartial});
  EXPECT_THAT(refused(Op::matmul, {f32({4, 3}, cut(1)), f32({3, 5})}), HasSubstr("inner dimension is cut in one operand only"));
  EXPECT_THAT(refused(Op::matmul, {f32({4, 3}, cut(0)), f32({3, 5}, cut(1))}), HasSubstr("not along the same dimension"));
  EXPECT_THAT(refused(Op::matmul, {f32({2, 4, 3}, cut(0)), f32({2, 3, 5})}), HasSubstr("leading dimension is cut in one operand only"));
  EXPECT_THAT(refused(Op::matmul, {f32({4, 3}, kPartial), f32({3, 5}, cut(1))}), HasSubstr("summed over the ranks first"));
}

TEST(MatmulLayout, ABiasIsAddedOnce) {
  EXPECT_EQ(infer(Op::linear, {f32({4, 3}, cut(0)), f32({3, 5}), f32({5})}), Layouts{cut(0)});
  EXPECT_EQ(infer(Op::linear, {f32({4, 3}), f32({3, 5}, cut(1)), f32({5}, cut(0))}), Layouts{cut(1)});
  EXPECT_THAT(refused(Op::linear, {f32({4, 3}), f32({3, 5}, cut(1)), f32({5})}), HasSubstr("bias must be sharded"));
  EXPECT_THAT(refused(Op::linear, {f32({4, 3}, cut(1)), f32({3, 5}, cut(0)), f32({5})}), HasSubstr("bias would count once per rank"));
}

TEST(MatmulLayout, WhatIsFusedBehindAProductNeedsWholeSums) {
  const Attrs attrs = {{"bias", true}, {"residual", true}, {"column_sums", true}};
  const auto fused = [&](const Type& x, const Type& weight, const Type& bias, const Type& residual) {
    return std::vector<Type>{x, weight, bias, residual};
  };
  EXPECT_EQ(infer(Op::fused_linear, fused(f32({4, 3}, cut(0)), f32({3, 6}), f32({6}), f32({4, 6}, cut(0))), attrs),
            (Layouts{cut(0), kPartial}));
  EXPECT_EQ(infer(Op::fused_linear, fused(f32({4, 3}), f32({3, 6}, cut(1)), f32({6}, cut(0)), f32({4, 6}, cut(1))), attrs),
            (Layouts{cut(1), cut(0)}));
  EXPECT_THAT(refused(Op::fused_linear, fused(f32({4, 3}, cut(1)), f32({3, 6}, cut(0)), f32({6}), f32({4, 6})), attrs),
              HasSubstr("must be summed over the ranks first"));
  EXPECT_THAT(refused(Op::fused_linear, fused(f32({4, 3}, cut(0)), f32({3, 6}), f32({6}), f32({4, 6})), attrs),
              HasSubstr("must have the same layout"));
  EXPECT_THAT(refused(Op::fused_linear, fused(f32({4, 3}), f32({3, 6}, cut(1)), f32({6}), f32({4, 6}, cut(1))), attrs),
              HasSubstr("bias must be sharded"));
}

TEST(MatmulLayout, APartialProductIsAddedToAnotherPartialSum) {
  const Type x = f32({4, 3}, cut(1)), weight = f32({3, 6}, cut(0));
  EXPECT_EQ(infer(Op::fused_linear, {x, weight, f32({4, 6}, kPartial)}, {{"residual", true}}), Layouts{kPartial});
  EXPECT_THAT(refused(Op::fused_linear, {x, weight, f32({4, 6})}, {{"residual", true}}), HasSubstr("must be summed over the ranks first"));
  EXPECT_THAT(refused(Op::fused_linear, {f32({4, 3}), f32({3, 6}), f32({4, 6}, kPartial)}, {{"residual", true}}),
              HasSubstr("must have the same layout"));
  EXPECT_THAT(refused(Op::fused_linear, {x, weight, f32({4, 6}, kPartial)}, {{"residual", true}, {"activation", "relu"}}),
              HasSubstr("must be summed over the ranks first"));
}

TEST(RowLayout, LeadingDimensionsPassAndTheRowsOwnIsRefused) {
  EXPECT_EQ(infer(Op::softmax, {f32({4, 3}, cut(0))}), Layouts{cut(0)});
  EXPECT_THAT(refused(Op::softmax, {f32({4, 3}, cut(1))}), HasSubstr("gathered first"));
  EXPECT_EQ(infer(Op::layer_norm, {f32({4, 3}, cut(0)), f32({3}), f32({3})}), (Layouts{cut(0), cut(0), cut(0)}));
  EXPECT_THAT(refused(Op::layer_norm, {f32({4, 3}), f32({3}, cut(0)), f32({3})}), HasSubstr("gamma must be replicated"));
  EXPECT_THAT(refused(Op::softmax_backward, {f32({4, 3}, cut(0)), f32({4, 3})}), HasSubstr("y and dy must have one layout"));
}

TEST(RowLayout, GradientsOfGammaAndBetaArePartialOverCutSamples) {
  const Type x = f32({4, 3}, cut(0)), row = f32({4}, cut(0));
  EXPECT_EQ(infer(Op::layer_norm_backward, {x, f32({3}), row, row, x}), (Layouts{cut(0), kPartial, kPartial}));
  EXPECT_EQ(infer(Op::rms_norm_backward, {f32({4, 3}), f32({3}), f32({4}), f32({4, 3})}), (Layouts{kWhole, kWhole}));
}

TEST(AttentionLayout, SamplesAndHeadsMayBeCutPositionsNot) {
  const auto operand = [](const Layout& layout) { return f32({2, 4, 6, 8}, layout); };
  EXPECT_EQ(infer(Op::attention, {operand(cut(0)), operand(cut(0)), operand(cut(0))}), (Layouts{cut(0), cut(0)}));
  EXPECT_EQ(infer(Op::attention, {operand(cut(2)), operand(cut(2)), operand(cut(2))}), (Layouts{cut(2), cut(1)}));
  const Type q = operand(cut(2));
  EXPECT_EQ(infer(Op::attention_backward, {q, q, q, q, f32({2, 6, 4}, cut(1)), q}), (Layouts{cut(2), cut(2), cut(2)}));
  EXPECT_THAT(refused(Op::attention, {operand(cut(1)), operand(cut(1)), operand(cut(1))}), HasSubstr("only samples"));
  EXPECT_THAT(refused(Op::attention, {operand(cut(2)), operand(kWhole), operand(kWhole)}), HasSubstr("must have the same layout"));
  EXPECT_THAT(refused(Op::rope, {operand(cut(3))}), HasSubstr("only samples"));
}

TEST(IndexLayout, EmbeddingFollowsTokensOrColumns) {
  const auto tokens = [](const Layout& layout) { return of(DType::i32, {4, 5}, layout); };
  EXPECT_EQ(infer(Op::embedding, {f32({9, 3}), tokens(cut(0))}), Layouts{cut(0)});
  EXPECT_EQ(infer(Op::embedding, {f32({9, 3}, cut(1)), tokens(kWhole)}), Layouts{cut(2)});
  EXPECT_THAT(refused(Op::embedding, {f32({9, 3}, cut(0)), tokens(kWhole)}), HasSubstr("row may be on another rank"));
  EXPECT_EQ(infer(Op::embedding_backward, {tokens(cut(0)), f32({4, 5, 3}, cut(0))}, {{"rows", 9}}), Layouts{kPartial});
  EXPECT_EQ(infer(Op::embedding_backward, {tokens(kWhole), f32({4, 5, 3}, cut(2))}, {{"rows", 9}}), Layouts{cut(1)});
  EXPECT_THAT(refused(Op::embedding_backward, {tokens(kWhole), f32({4, 5, 3}, cut(0))}, {{"rows", 9}}),
              HasSubstr("tokens must be sharded like dy"));
}

TEST(LossLayout, CutSamplesGivePartialSums) {
  const Type logits = f32({4, 9}, cut(0)), targets = of(DType::i64, {4}, cut(0));
  EXPECT_EQ(infer(Op::cross_entropy, {logits, targets}), (Layouts{kPartial, kPartial, cut(0)}));
  EXPECT_EQ(infer(Op::cross_entropy_backward, {logits, targets, f32({4}, cut(0)), of(DType::f64, {})}), Layouts{cut(0)});
  EXPECT_EQ(infer(Op::fused_cross_entropy, {logits, targets, of(DType::f64, {})}), (Layouts{kPartial, kPartial, cut(0)}));
  EXPECT_THAT(refused(Op::fused_cross_entropy, {logits, targets, of(DType::f64, {}, kPartial)}), HasSubstr("dsum must be replicated"));
  EXPECT_EQ(infer(Op::mse, {f32({4}, cut(0)), f32({4}, cut(0))}), (Layouts{kPartial, kPartial}));
  EXPECT_THAT(refused(Op::cross_entropy, {logits, of(DType::i64, {4})}), HasSubstr("must have one layout"));
  EXPECT_THAT(refused(Op::cross_entropy, {f32({4, 9}, cut(1)), of(DType::i64, {4})}), HasSubstr("gathered first"));
  EXPECT_THAT(refused(Op::mse_backward, {f32({4}), f32({4}), of(DType::f64, {}, kPartial)}), HasSubstr("dsum must be replicated"));
}

TEST(LossLayout, RanksWithOwnColumnsOfTheVocabularyAllHaveTheWholeLoss) {
  const Attrs attrs = {{"first", 0}, {"classes", 18}};
  const Type logits = f32({4, 9}, cut(1)), targets = of(DType::i64, {4}), terms = of(DType::f64, {2, 4, 4});
  EXPECT_EQ(infer(Op::vocabulary_terms, {logits, targets}, attrs), Layouts{cut(0)});
  EXPECT_EQ(infer(Op::vocabulary_cross_entropy, {logits, targets, terms}, attrs), (Layouts{{}, {}, {}, {}}));
  const Type softmax = of(DType::f64, {4, 2}), dsum = of(DType::f64, {});
  EXPECT_EQ(infer(Op::vocabulary_cross_entropy_backward, {logits, targets, softmax, dsum}, attrs), Layouts{cut(1)});
  EXPECT_THAT(refused(Op::vocabulary_cross_entropy, {logits, targets, of(DType::f64, {1, 4, 4}, cut(0))}, attrs),
              HasSubstr("terms must be replicated"));
  EXPECT_THAT(refused(Op::vocabulary_terms, {logits, of(DType::i64, {4}, cut(0))}, attrs), HasSubstr("targets must be replicated"));
}

TEST(LossLayout, TermsOfAVocabularyFollowTheRowsOfLogits) {
  const Attrs attrs = {{"first", 0}, {"classes", 18}};
  const Type logits = f32({4, 9}, cut(0)), targets = of(DType::i64, {4}, cut(0)), terms = of(DType::f64, {2, 4, 4}, cut(1));
  EXPECT_EQ(infer(Op::vocabulary_terms, {logits, targets}, attrs), Layouts{cut(1)});
  EXPECT_EQ(infer(Op::vocabulary_cross_entropy, {logits, targets, terms}, attrs), (Layouts{kPartial, kPartial, cut(0), cut(0)}));
  EXPECT_THAT(refused(Op::vocabulary_cross_entropy, {logits, targets, of(DType::f64, {2, 4, 4})}, attrs),
              HasSubstr("terms must be sharded like the rows of logits"));
  EXPECT_THAT(refused(Op::vocabulary_terms, {f32({4, 9}), targets}, attrs), HasSubstr("targets must be replicated as the rows of logits"));
}

TEST(LossLayout, TheFactorOfAStepTakesNoPartialCount) {
  EXPECT_THAT(refused(Op::step_factor, {of(DType::f64, {}), of(DType::boolean, {}), of(DType::f64, {}, kPartial)}),
              HasSubstr("count must be replicated"));
  EXPECT_THAT(refused(Op::gradient_norm, {f32({4}, kPartial)}), HasSubstr("summed over the ranks first"));
}

TEST(ReductionLayout, ASumOverACutDimensionIsPartial) {
  EXPECT_EQ(infer(Op::sum, {f32({4, 3}, cut(0))}), Layouts{kPartial});
  EXPECT_EQ(infer(Op::sum, {f32({4, 3}, cut(1))}, {{"axes", Ints{0}}}), Layouts{cut(0)});
  EXPECT_EQ(infer(Op::sum, {f32({4, 3}, cut(1))}, {{"axes", Ints{0}}, {"keep_dims", true}}), Layouts{cut(1)});
  EXPECT_EQ(infer(Op::mean, {f32({4, 3}, cut(1))}, {{"axes", Ints{-2}}}), Layouts{cut(0)});
  EXPECT_EQ(infer(Op::mean, {f32({4, 3}, kPartial)}), Layouts{kPartial});
  EXPECT_EQ(infer(Op::argmax, {f32({4, 3}, cut(0))}), Layouts{cut(0)});
  EXPECT_THAT(refused(Op::mean, {f32({4, 3}, cut(0))}), HasSubstr("gathered first"));
  EXPECT_THAT(refused(Op::max, {f32({4, 3}, kPartial)}), HasSubstr("summed over the ranks first"));
}

TEST(MovementLayout, ReshapeKeepsALeadingCut) {
  EXPECT_EQ(infer(Op::reshape, {f32({4, 6}, cut(0))}, {{"shape", Ints{24}}}), Layouts{cut(0)});
  EXPECT_EQ(infer(Op::reshape, {f32({24}, cut(0))}, {{"shape", Ints{1, 24}}}), Layouts{cut(1)});
  EXPECT_EQ(infer(Op::reshape, {f32({2, 4, 6}, cut(2))}, {{"shape", Ints{8, 3, 2}}}), Layouts{cut(1)});
  EXPECT_EQ(infer(Op::reshape, {f32({-4, 6}, cut(1))}, {{"shape", Ints{-1, 4, 6}}}), Layouts{cut(2)});
  EXPECT_EQ(infer(Op::reshape, {f32({4, 6}, kPartial)}, {{"shape", Ints{24}}}), Layouts{kPartial});
  EXPECT_THAT(refused(Op::reshape, {f32({4, 6}, cut(1))}, {{"shape", Ints{24}}}),
              HasSubstr("dimension 1 is sharded and becomes part of another"));
}

TEST(MovementLayout, CutsMoveWithTheirDimension) {
  EXPECT_EQ(infer(Op::transpose, {f32({2, 3, 4}, cut(0))}, {{"order", Ints{1, 2, 0}}}), Layouts{cut(2)});
  EXPECT_EQ(infer(Op::broadcast_to, {f32({3, 1}, cut(0))}, {{"shape", Ints{2, 3, 5}}}), Layouts{cut(1)});
  EXPECT_THAT(refused(Op::broadcast_to, {f32({1}, cut(0))}, {{"shape", Ints{5}}}), HasSubstr("cannot be broadcast"));
  EXPECT_EQ(infer(Op::split, {f32({4, 6}, cut(0))}, {{"sizes", Ints{2, 4}}}), (Layouts{cut(0), cut(0)}));
  EXPECT_EQ(infer(Op::concat, {f32({4}, kPartial), f32({4}, kPartial)}), Layouts{kPartial});
  EXPECT_THAT(refused(Op::concat, {f32({4, 2}, cut(0)), f32({4, 2})}), HasSubstr("must have one layout"));
  EXPECT_THAT(refused(Op::slice, {f32({4, 6}, cut(1))}, {{"axis", 1}, {"end", 2}}), HasSubstr("gathered first"));
}

// --- along the tensor axis

constexpr Mesh kTensor{.data = 2, .tensor = 2, .stage = 1};

Layout along_tensor(AxisLayout::Kind kind, int32_t dimension = 0, int64_t grain = 0) {
  Layout layout;
  layout[MeshAxis::tensor] = {.kind = kind, .where = dimension, .grain = grain};
  return layout;
}
/// Sharded along the tensor axis: as one segment, or as several.
Layout tensor_cut(int32_t dimension) { return along_tensor(AxisLayout::Kind::sharded, dimension); }
Layout segments_cut(int32_t dimension) { return along_tensor(AxisLayout::Kind::sharded, dimension, 1); }
const Layout kTensorPartial = along_tensor(AxisLayout::Kind::partial);

Layouts infer_tensor(Op op, const std::vector<Type>& in, const Attrs& attrs = {}) { return infer(op, in, attrs, kTensor); }
std::string refused_tensor(Op op, const std::vector<Type>& in, const Attrs& attrs = {}) {
  return refusal([&] { infer_tensor(op, in, attrs); });
}

TEST(TensorLayout, CollectivesOfValuesTakeAndGiveOneLayout) {
  const Attrs two{{"ranks", 2}};
  const Attrs first_of_two{{"rank", 0}, {"ranks", 2}};
  EXPECT_EQ(infer_tensor(Op::tensor_gather, {f32({4, 3}, tensor_cut(0))}, two), Layouts{kWhole});
  EXPECT_EQ(infer_tensor(Op::tensor_scatter, {f32({4, 3}, kTensorPartial)}, two), Layouts{tensor_cut(0)});
  EXPECT_EQ(infer_tensor(Op::tensor_sum, {f32({4, 3}, kTensorPartial)}), Layouts{kWhole});
  EXPECT_EQ(infer_tensor(Op::tensor_share, {f32({4, 3})}), Layouts{kWhole});
  EXPECT_EQ(infer_tensor(Op::tensor_part, {f32({4, 3})}, first_of_two), Layouts{tensor_cut(0)});

  EXPECT_THAT(refused_tensor(Op::tensor_gather, {f32({4, 3})}, two), HasSubstr("x must be sharded by rows"));
  EXPECT_THAT(refused_tensor(Op::tensor_gather, {f32({4, 3}, tensor_cut(1))}, two), HasSubstr("x must be sharded by rows"));
  EXPECT_THAT(refused_tensor(Op::tensor_gather, {f32({4, 3}, segments_cut(0))}, two), HasSubstr("x must be sharded by rows"));
  EXPECT_THAT(refused_tensor(Op::tensor_scatter, {f32({4, 3})}, two), HasSubstr("x must be partial"));
  EXPECT_THAT(refused_tensor(Op::tensor_sum, {f32({4, 3}, tensor_cut(0))}), HasSubstr("x must be partial"));
  EXPECT_THAT(refused_tensor(Op::tensor_share, {f32({4, 3}, kTensorPartial)}), HasSubstr("x must be replicated"));
  EXPECT_THAT(refused_tensor(Op::tensor_part, {f32({4, 3}, tensor_cut(0))}, first_of_two), HasSubstr("x must be replicated"));
}

TEST(TensorLayout, CollectivesOfValuesKeepTheDataAxis) {
  Layout both = cut(0);
  both[MeshAxis::tensor].kind = AxisLayout::Kind::partial;
  EXPECT_EQ(infer_tensor(Op::tensor_sum, {f32({4, 3}, both)}), Layouts{cut(0)});
}

TEST(TensorLayout, UpdatesOfPiecesGiveRowsAndTerms) {
  const Attrs attrs{{"dimension", 1}, {"segments", Ints{6}}, {"rank", 0}, {"ranks", 2}};
  const Type piece = f32({4, 3}, tensor_cut(1)), factor = f32({}), skip = of(DType::boolean, {}, {}), rates = of(DType::f64, {2}, {});
  EXPECT_EQ(infer_tensor(Op::muon_direction, {piece, factor, skip, rates}, attrs), Layouts{tensor_cut(0)});
  EXPECT_EQ(infer_tensor(Op::adafactor_sums, {piece, factor, skip, rates, piece}, attrs), Layouts{kTensorPartial});
}

TEST(TensorLayout, SegmentsSplitAndJoinAgain) {
  const Attrs halves{{"axis", 1}, {"sizes", Ints{2, 4}}};
  EXPECT_EQ(infer_tensor(Op::split, {f32({3, 6}, segments_cut(1))}, halves), (Layouts{tensor_cut(1), tensor_cut(1)}));
  EXPECT_EQ(infer_tensor(Op::concat, {f32({3, 2}, tensor_cut(1)), f32({3, 4}, tensor_cut(1))}, {{"axis", 1}}), Layouts{segments_cut(1)});
  EXPECT_THAT(refused_tensor(Op::split, {f32({3, 6}, tensor_cut(1))}, halves), HasSubstr("gathered first"));
  EXPECT_THAT(refused_tensor(Op::concat, {f32({3, 2}, segments_cut(1)), f32({3, 4}, segments_cut(1))}, {{"axis", 1}}),
              HasSubstr("gathered first"));
  EXPECT_THAT(refused_tensor(Op::concat, {f32({3, 2}, tensor_cut(1)), f32({3, 4}, segments_cut(1))}, {{"axis", 1}}),
              HasSubstr("must have one layout"));
}

TEST(TensorLayout, ProductsOfSegmentsHaveSegments) {
  EXPECT_EQ(infer_tensor(Op::matmul, {f32({4, 3}), f32({3, 6}, segments_cut(1))}), Layouts{segments_cut(1)});
  EXPECT_EQ(infer_tensor(Op::linear, {f32({4, 3}), f32({3, 6}, segments_cut(1)), f32({6}, segments_cut(0))}), Layouts{segments_cut(1)});
  EXPECT_THAT(refused_tensor(Op::linear, {f32({4, 3}), f32({3, 6}, segments_cut(1)), f32({6}, tensor_cut(0))}),
              HasSubstr("the bias must be sharded like the weight's columns"));
  EXPECT_EQ(infer_tensor(Op::matmul, {f32({4, 6}, segments_cut(1)), f32({6, 3}, segments_cut(0))}), Layouts{kTensorPartial});
  EXPECT_THAT(refused_tensor(Op::matmul, {f32({4, 6}, tensor_cut(1)), f32({6, 3}, segments_cut(0))}),
              HasSubstr("not along the same dimension"));
  EXPECT_EQ(infer_tensor(Op::sum, {f32({4, 6}, segments_cut(1))}, {{"axes", Ints{0}}}), Layouts{segments_cut(0)});
  EXPECT_EQ(infer_tensor(Op::transpose, {f32({4, 6}, segments_cut(1))}, {{"order", Ints{1, 0}}}), Layouts{segments_cut(0)});
}

TEST(TensorLayout, ReshapeCutsTheDimensionThatItIsGiven) {
  const auto heads = [](int64_t given) { return Attrs{{"shape", Ints{2, 1, 4}}, {"cut", given}}; };
  EXPECT_EQ(infer_tensor(Op::reshape, {f32({2, 4}, tensor_cut(1))}, heads(-1)), Layouts{tensor_cut(2)});
  EXPECT_EQ(infer_tensor(Op::reshape, {f32({2, 4}, tensor_cut(1))}, heads(1)), Layouts{tensor_cut(1)}) << "one head on each rank";
  EXPECT_EQ(infer_tensor(Op::reshape, {f32({2, 4}, cut(1))}, heads(1)), Layouts{cut(2)}) << "the data axis";
  EXPECT_THAT(refused_tensor(Op::reshape, {f32({2, 4}, tensor_cut(1))}, heads(0)), HasSubstr("becomes part of another one"));
  EXPECT_EQ(infer_tensor(Op::reshape, {f32({2, 3, 4}, segments_cut(2))}, {{"shape", Ints{6, 4}}}), Layouts{segments_cut(1)});
  EXPECT_THAT(refused_tensor(Op::reshape, {f32({6, 4}, segments_cut(1))}, {{"shape", Ints{6, 2, 2}}}), HasSubstr("must keep its size"));
}

TEST(TensorLayout, SquaresOfPiecesArePartial) {
  EXPECT_EQ(infer_tensor(Op::gradient_squares, {f32({4, 6}, tensor_cut(1)), f32({4})}), Layouts{kTensorPartial});
  EXPECT_EQ(infer_tensor(Op::gradient_squares, {f32({4, 6}), f32({4})}), Layouts{kWhole});
}

}  // namespace
}  // namespace st
