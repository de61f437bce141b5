#include "ir/rules.h"
#include "refusal.h"

namespace st {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr auto B = kBatch;

Type f32(const Shape& shape) { return {DType::f32, shape, {}}; }
Type f64(const Shape& shape) { return {DType::f64, shape, {}}; }
Type bf16(const Shape& shape) { return {DType::bf16, shape, {}}; }
Type i32(const Shape& shape) { return {DType::i32, shape, {}}; }
Type i64(const Shape& shape) { return {DType::i64, shape, {}}; }
Type boolean(const Shape& shape) { return {DType::boolean, shape, {}}; }

std::vector<Type> infer(Op op, const std::vector<Type>& in, const Attrs& attrs = {}) {
  const Attrs made = make_attrs(op, attrs);
  return st::infer({.op = op, .in = in, .attrs = made}, {});
}

std::string refused(Op op, const std::vector<Type>& in, const Attrs& attrs = {}) {
  return refusal([&] { infer(op, in, attrs); });
}

using Types = std::vector<Type>;

TEST(ShapeRules, TheNumberOfInputsIsChecked) {
  EXPECT_EQ(refused(Op::add, {f32({2})}), "add: needs 2 inputs, got 1");
  EXPECT_EQ(refused(Op::mse, {f32({2})}), "mse: needs at least 2 inputs, got 1");
  EXPECT_EQ(refused(Op::mse, {f32({2}), f32({2}), f32({2}), f32({2})}), "mse: needs at least 2 inputs, got 4");
}

TEST(ShapeRules, ADimensionThatHasNoNegativeIsRefusedAndCanBePrinted) {
  const std::string shown = "f32[2, 9223372036854775808*batch]";
  EXPECT_EQ(refused(Op::fill, {}, {{"shape", Ints{2, INT64_MIN}}}), "fill: the shape " + shown + " is out of range");
  EXPECT_THAT(refused(Op::broadcast_to, {f32({1})}, {{"shape", Ints{2, INT64_MIN}}}), HasSubstr(shown));
}

TEST(Broadcasting, FollowsNumPyAndKeepsTheBatch) {
  EXPECT_EQ(infer(Op::add, {f32({B, 1, 4}), f32({3, 1})}), Types{f32({B, 3, 4})});
  EXPECT_EQ(infer(Op::mul, {f32({1, 4}), f32({-6, 4})}), Types{f32({-6, 4})});
  EXPECT_EQ(infer(Op::sub, {f32({0, 4}), f32({4})}), Types{f32({0, 4})});
  EXPECT_EQ(infer(Op::where, {boolean({B, 1}), f32({3}), f32({})}), Types{f32({B, 3})});
}

TEST(Broadcasting, TheBatchIsNotANumber) {
  EXPECT_EQ(refused(Op::add, {f32({B, 4}), f32({8, 4})}), "add: shapes do not broadcast, a is f32[batch, 4], b is f32[8, 4]");
  EXPECT_THAT(refused(Op::add, {f32({B, 4}), f32({-2, 4})}), HasSubstr("b is f32[2*batch, 4]"));
}

TEST(Broadcasting, TwoDtypesNeedACast) {
  EXPECT_EQ(refused(Op::add, {f32({2}), bf16({2})}),
            "add: a is f32[2], b is bf16[2]; both must have the same dtype, cast one of them first");
}

TEST(Dtypes, IntegersAddMultiplyCompareAndChooseButDoNotDivide) {
  for (const Op op : {Op::add, Op::sub, Op::mul, Op::minimum, Op::maximum}) EXPECT_EQ(infer(op, {i64({3}), i64({})}), Types{i64({3})});
  EXPECT_EQ(infer(Op::compare, {i32({3}), i32({3})}, {{"test", "less"}}), Types{boolean({3})});
  EXPECT_EQ(infer(Op::where, {boolean({}), i32({3}), i32({3})}), Types{i32({3})});
  EXPECT_THAT(refused(Op::div, {i64({3}), i64({3})}), HasSubstr("a must be floating (f32, f64, bf16, f16), got i64[3]; cast it first"));
  EXPECT_THAT(refused(Op::exp, {i32({3})}), HasSubstr("cast it first"));
  EXPECT_THAT(refused(Op::add, {boolean({3}), boolean({3})}), HasSubstr("floating, i32 or i64"));
  EXPECT_THAT(refused(Op::where, {f32({}), f32({3}), f32({3})}), HasSubstr("condition must be bool, got f32[]"));
}

TEST(Dtypes, CastTakesAnyToAny) { EXPECT_EQ(infer(Op::cast, {boolean({B})}, {{"dtype", "f16"}}), (Types{{DType::f16, {B}, {}}})); }

TEST(Matmul, MultipliesTheLastTwoDimensionsAndBroadcastsTheRest) {
  EXPECT_EQ(infer(Op::matmul, {f32({4, 3}), f32({3, 5})}), Types{f32({4, 5})});
  EXPECT_EQ(infer(Op::matmul, {f32({7, 1, 4, 3}), f32({2, 3, 5})}), Types{f32({7, 2, 4, 5})});
  EXPECT_EQ(infer(Op::matmul, {f32({3, 4}), f32({5, 3})}, {{"transpose_a", true}, {"transpose_b", true}}), Types{f32({4, 5})});
  EXPECT_EQ(infer(Op::matmul, {f32({4, 0}), f32({0, 5})}), Types{f32({4, 5})});
}

TEST(Matmul, AnyDimensionMayBeTheBatch) {
  EXPECT_EQ(infer(Op::matmul, {f32({B, 3}), f32({3, 5})}), Types{f32({B, 5})});
  EXPECT_EQ(infer(Op::matmul, {f32({B, 2, 4, 3}), f32({B, 2, 3, 5})}), Types{f32({B, 2, 4, 5})});
  // The gradient of a weight: the inner dimension is the batch.
  EXPECT_EQ(infer(Op::matmul, {f32({-8, 3}), f32({-8, 5})}, {{"transpose_a", true}}), Types{f32({3, 5})});
}

TEST(Matmul, NamesBothShapesWhenTheyDoNotFit) {
  EXPECT_EQ(refused(Op::matmul, {f32({4, 3}), f32({4, 5})}), "matmul: inner dimensions differ, a is f32[4, 3], b is f32[4, 5]");
  EXPECT_THAT(refused(Op::matmul, {f32({B, 4, 3}), f32({2, 3, 5})}), HasSubstr("leading dimensions"));
  EXPECT_THAT(refused(Op::matmul, {f32({3}), f32({3, 5})}), HasSubstr("a needs at least 2 dimensions, got f32[3]"));
}

TEST(Linear, AddsABiasOfItsColumns) {
  EXPECT_EQ(infer(Op::linear, {f32({B, 7, 3}), f32({3, 5}), f32({5})}), Types{f32({B, 7, 5})});
  EXPECT_EQ(infer(Op::linear, {f32({3}), f32({5, 3}), f32({5})}, {{"transpose_weight", true}}), Types{f32({5})});
  EXPECT_THAT(refused(Op::linear, {f32({B, 3}), f32({3, 5}), f32({3})}), HasSubstr("bias must be f32[5], got f32[3]"));
}

TEST(FusedLinear, HasTheOperandsAndOutputsThatItsAttributesAskFor) {
  const Type x = f32({B, 3}), weight = f32({3, 5}), bias = f32({5}), y = f32({B, 5}), packed{DType::u8, {64}, {}};
  const AttrValue silu = std::string("silu");
  EXPECT_EQ(infer(Op::fused_linear, {x, weight}), Types{y});
  EXPECT_EQ(infer(Op::fused_linear, {x, weight, bias, y},
                  {{"bias", true}, {"activation", silu}, {"residual", true}, {"pre_activation", true}, {"column_sums", true}}),
            (Types{y, y, bias}));
  EXPECT_EQ(infer(Op::fused_linear, {x, weight, y, packed}, {{"activation", silu}, {"backward", true}, {"packed", true}}), Types{y});
  EXPECT_THAT(refused(Op::fused_linear, {x, weight}, {{"bias", true}}), HasSubstr("the attributes ask for 3 inputs, got 2"));
  EXPECT_THAT(refused(Op::fused_linear, {x, weight, x}, {{"residual", true}}), HasSubstr("must be f32[batch, 5], got f32[batch, 3]"));
  EXPECT_THAT(refused(Op::fused_linear, {x, weight, y}, {{"backward", true}}), HasSubstr("need an activation"));
  EXPECT_THAT(refused(Op::fused_linear, {x, weight, y}, {{"activation", silu}, {"backward", true}, {"pre_activation", true}}),
              HasSubstr("backward and pre_activation exclude each other"));
  EXPECT_THAT(refused(Op::fused_linear, {x, weight, bias}, {{"packed", true}}), HasSubstr("u8 with one dimension, got f32[5]"));
}

TEST(Pack, TakesAMatrix) {
  EXPECT_EQ(infer(Op::pack, {f32({3, 5})}, {{"rows", 7}}), Types{});
  EXPECT_THAT(refused(Op::pack, {f32({5})}, {{"rows", 7}}), HasSubstr("weight needs 2 dimensions"));
  EXPECT_THAT(refused(Op::pack, {f32({3, 5})}, {{"rows", -1}}), HasSubstr("rows must not be negative"));
}

TEST(Dropout, ChecksItsRateAndCounters) {
  EXPECT_EQ(infer(Op::dropout, {f32({B, 3}), i64({2})}, {{"rate", 0.1}}), Types{f32({B, 3})});
  EXPECT_THAT(refused(Op::dropout, {f32({B, 3}), i64({2})}, {{"rate", 1}}), HasSubstr("rate must be in [0, 1), got 1"));
  EXPECT_THAT(refused(Op::dropout, {f32({B, 3}), i64({3})}, {{"rate", 0.1}}), HasSubstr("counters must be i64[2], got i64[3]"));
}

TEST(Norms, StatisticsAreWiderThanTheData) {
  EXPECT_EQ(infer(Op::layer_norm, {bf16({B, 7, 4}), bf16({4}), bf16({4})}), (Types{bf16({B, 7, 4}), f32({B, 7}), f32({B, 7})}));
  EXPECT_EQ(infer(Op::layer_norm, {f64({2, 4}), f64({4}), f64({4})}), (Types{f64({2, 4}), f64({2}), f64({2})}));
  EXPECT_EQ(infer(Op::rms_norm, {f32({4}), f32({4})}), (Types{f32({4}), f32({})}));
  EXPECT_EQ(infer(Op::layer_norm_backward, {f32({B, 4}), f32({4}), f32({B}), f32({B}), f32({B, 4})}),
            (Types{f32({B, 4}), f32({4}), f32({4})}));
  EXPECT_EQ(infer(Op::rms_norm_backward, {f32({B, 4}), f32({4}), f32({B}), f32({B, 4})}), (Types{f32({B, 4}), f32({4})}));
  EXPECT_EQ(infer(Op::layer_norm, {bf16({B, 4}), f32({4}), f32({4})}), (Types{bf16({B, 4}), f32({B}), f32({B})}));
  EXPECT_EQ(infer(Op::rms_norm_backward, {bf16({B, 4}), f32({4}), f32({B}), bf16({B, 4})}), (Types{bf16({B, 4}), f32({4})}));
  EXPECT_THAT(refused(Op::layer_norm, {f32({B, 4}), f32({3}), f32({4})}), HasSubstr("gamma must be f32[4], got f32[3]"));
  EXPECT_THAT(refused(Op::layer_norm, {bf16({B, 4}), f32({4}), bf16({4})}), HasSubstr("beta must be f32[4], got bf16[4]"));
  EXPECT_THAT(refused(Op::rms_norm, {f32({B, 4}), bf16({4})}), HasSubstr("gamma must be f32[4], got bf16[4]"));
  EXPECT_THAT(refused(Op::rms_norm, {f32({}), f32({4})}), HasSubstr("x needs at least 1 dimensions"));
}

TEST(Softmax, ChecksItsAxisInBothDirections) {
  EXPECT_EQ(infer(Op::softmax, {f32({B, 4})}), Types{f32({B, 4})});
  EXPECT_THAT(refused(Op::softmax, {f32({B, 4})}, {{"axis", 2}}), HasSubstr("softmax: axis 2 is out of range"));
  EXPECT_THAT(refused(Op::softmax_backward, {f32({B, 4}), f32({B, 4})}, {{"axis", -3}}), HasSubstr("axis -3 is out of range"));
  EXPECT_THAT(refused(Op::softmax_backward, {f32({B, 4}), f32({B, 5})}), HasSubstr("both must have the same shape"));
}

TEST(Attention, GroupsQueryHeadsAndKeepsTheRowSums) {
  const Type q = bf16({B, 5, 8, 16}), k = bf16({B, 9, 2, 16});
  EXPECT_EQ(infer(Op::attention, {q, k, k}), (Types{q, f32({B, 8, 5})}));
  EXPECT_EQ(infer(Op::attention_backward, {q, k, k, q, f32({B, 8, 5}), q}), (Types{q, k, k}));
  EXPECT_EQ(infer(Op::attention, {f64({1, 2, 2, 4}), f64({1, 0, 2, 4}), f64({1, 0, 2, 4})})[1], f64({1, 2, 2}));
  EXPECT_THAT(refused(Op::attention, {f32({B, 5, 8, 16}), f32({B, 5, 3, 16}), f32({B, 5, 3, 16})}), HasSubstr("key heads must divide"));
  EXPECT_THAT(refused(Op::attention, {f32({B, 5, 8, 16}), f32({B, 5, 8, 8}), f32({B, 5, 8, 8})}),
              HasSubstr("differ in batch or head size"));
  EXPECT_THAT(refused(Op::attention_backward, {q, k, k, q, f32({B, 5, 8}), q}), HasSubstr("lse must be f32[batch, 8, 5]"));
  EXPECT_THAT(refused(Op::rope, {f32({B, 5, 8, 7})}), HasSubstr("even D"));
}

TEST(Embedding, PutsARowForEachToken) {
  EXPECT_EQ(infer(Op::embedding, {f32({100, 8}), i64({B, 5})}), Types{f32({B, 5, 8})});
  EXPECT_EQ(infer(Op::embedding_backward, {i32({B, 5}), f32({B, 5, 8})}, {{"rows", 100}}), Types{f32({100, 8})});
  EXPECT_THAT(refused(Op::embedding, {f32({100, 8}), f32({B, 5})}), HasSubstr("tokens must be i32 or i64, got f32[batch, 5]"));
  EXPECT_THAT(refused(Op::embedding_backward, {i32({B, 5}), f32({B, 6, 8})}, {{"rows", 100}}), HasSubstr("one row per token"));
}

TEST(Gather, TakesTheIndexsShape) {
  EXPECT_EQ(infer(Op::gather, {f32({B, 10}), i64({B, 3})}), Types{f32({B, 3})});
  EXPECT_EQ(infer(Op::gather_backward, {i64({B, 3}), f32({B, 3})}, {{"size", 10}}), Types{f32({B, 10})});
  EXPECT_THAT(refused(Op::gather, {f32({B, 10}), i64({4, 3})}), HasSubstr("in every dimension except axis 1"));
  EXPECT_THAT(refused(Op::gather, {f32({B, 10}), i64({2, 10})}, {{"axis", 0}}), HasSubstr("depends on the batch"));
}

TEST(Argmax, IsAnIndexAlongOneAxis) {
  EXPECT_EQ(infer(Op::argmax, {f32({B, 10})}), Types{i32({B})});
  EXPECT_EQ(infer(Op::argmax, {f32({B, 10})}, {{"axis", 0}, {"keep_dims", true}}), Types{i32({1, 10})});
  EXPECT_THAT(refused(Op::argmax, {f32({3, 0})}), HasSubstr("is empty"));
}

TEST(Losses, YieldASumAndACountInDouble) {
  EXPECT_EQ(infer(Op::cross_entropy, {bf16({B, 5, 9}), i32({B, 5})}), (Types{f64({}), f64({}), f32({B, 5})}));
  EXPECT_EQ(infer(Op::cross_entropy, {f64({B, 9}), i64({B}), f64({B})})[2], f64({B}));
  EXPECT_EQ(infer(Op::cross_entropy_backward, {f32({B, 9}), i64({B}), f32({B}), f64({})}), Types{f32({B, 9})});
  EXPECT_EQ(infer(Op::fused_cross_entropy, {f32({B, 9}), i64({B}), f64({})}), (Types{f64({}), f64({}), f32({B, 9})}));
  EXPECT_EQ(infer(Op::fused_cross_entropy, {f32({B, 9}), i64({B}), f64({}), f32({B})}, {{"result", std::string("bf16")}})[2], bf16({B, 9}));
  EXPECT_EQ(infer(Op::mse, {f32({B, 3}), f32({B, 3}), f32({B, 3})}), (Types{f64({}), f64({})}));
  EXPECT_EQ(infer(Op::huber_backward, {f32({B, 3}), f32({B, 3}), f64({})}), Types{f32({B, 3})});
}

TEST(Losses, RefuseWhatDoesNotMatchTheirRows) {
  EXPECT_THAT(refused(Op::cross_entropy, {f32({B, 9}), i64({B, 9})}), HasSubstr("targets must have the shape of logits' rows"));
  EXPECT_THAT(refused(Op::cross_entropy, {f32({B, 0}), i64({B})}), HasSubstr("at least one class"));
  EXPECT_THAT(refused(Op::cross_entropy_backward, {f32({B, 9}), i64({B}), f32({B}), f32({})}), HasSubstr("dsum must be f64[], got f32[]"));
  EXPECT_THAT(refused(Op::cross_entropy, {f32({B, 9}), i64({B})}, {{"label_smoothing", 1.5}}),
              HasSubstr("label_smoothing must be in [0, 1], got 1.5"));
  EXPECT_THAT(refused(Op::cross_entropy, {f32({B, 9}), i64({B})}, {{"z_loss", -1.0}}), HasSubstr("z_loss must be in [0, inf), got -1"));
  EXPECT_THAT(refused(Op::fused_cross_entropy, {bf16({B, 9}), i64({B}), f64({})}), HasSubstr("logits must be f32[batch, 9]"));
  EXPECT_THAT(refused(Op::mse, {f32({B, 3}), f32({B})}), HasSubstr("x is f32[batch, 3], target is f32[batch]"));
}

TEST(Losses, OfAVocabularyOverRanksGoThroughTermsOfTheirColumns) {
  const Attrs attrs = {{"first", 9}, {"classes", 20}};
  EXPECT_EQ(infer(Op::vocabulary_terms, {bf16({B, 5, 9}), i32({B, 5})}, attrs), Types{f64({1, B, 5, 4})});
  EXPECT_EQ(infer(Op::vocabulary_cross_entropy, {bf16({B, 5, 9}), i32({B, 5}), f64({3, B, 5, 4}), bf16({B, 5})}, attrs),
            (Types{f64({}), f64({}), f32({B, 5}), f64({B, 5, 2})}));
  EXPECT_EQ(infer(Op::vocabulary_cross_entropy_backward, {f32({B, 9}), i64({B}), f64({B, 2}), f64({})}, attrs), Types{f32({B, 9})});

  EXPECT_THAT(refused(Op::vocabulary_terms, {f32({B, 9}), i64({B})}, {{"first", 12}, {"classes", 20}}),
              HasSubstr("must be some of the classes 0..19, got 9 columns from 12"));
  EXPECT_THAT(refused(Op::vocabulary_terms, {f32({B, 9}), i64({B})}, {{"first", -1}, {"classes", 20}}), HasSubstr("from -1"));
  EXPECT_THAT(refused(Op::vocabulary_cross_entropy, {f32({B, 9}), i64({B}), f64({B, 4})}, attrs), HasSubstr("terms must"));
  EXPECT_THAT(refused(Op::vocabulary_cross_entropy_backward, {f32({B, 9}), i64({B}), f32({B}), f64({})}, attrs),
              HasSubstr("softmax must be f64[batch, 2]"));
}

TEST(PieceUpdates, AreOfThePartsOfSegments) {
  const Type scale = f32({}), skip{DType::boolean, {}, {}}, rates = f64({2});
  const Attrs columns = {{"dimension", 1}, {"segments", Ints{8, 4}}, {"rank", 1}, {"ranks", 2}};
  EXPECT_EQ(infer(Op::muon_direction, {bf16({5, 6}), scale, skip, rates}, columns), Types{f32({5, 6})});
  EXPECT_EQ(infer(Op::adafactor_sums, {f32({5, 6}), scale, skip, rates, f32({5, 6})}, columns), Types{f64({5 + 12 + 1})});
  EXPECT_EQ(infer(Op::adafactor_size, {f32({5, 6}), scale, skip, rates, f64({18})}, columns), Types{f64({1})});
  const Attrs elements = {{"segments", Ints{12}}, {"rank", 0}, {"ranks", 2}};
  EXPECT_EQ(infer(Op::adafactor_sums, {f32({6}), scale, skip, rates, f32({6})}, elements), Types{f64({1})});

  EXPECT_THAT(refused(Op::muon_direction, {f32({5, 7}), scale, skip, rates}, columns),
              HasSubstr("the parts of segments [8, 4] are 6, dimension 1 of the piece is 7"));
  EXPECT_THAT(refused(Op::muon_direction, {f32({6}), scale, skip, rates}, elements), HasSubstr("gradient must be a matrix"));
  EXPECT_THAT(refused(Op::muon_step, {bf16({10, 6}), scale, skip, rates}, columns), HasSubstr("directions must be f32 or f64"));
  EXPECT_THAT(refused(Op::adafactor_sums, {f32({6}), scale, skip, rates, f32({6})}, {{"segments", Ints{9, 3}}, {"rank", 0}, {"ranks", 2}}),
              HasSubstr("a segment of 9 is not a multiple of the 2 ranks"));
  EXPECT_THAT(refused(Op::adafactor_sums, {f32({6}), scale, skip, rates, f32({6})}, {{"segments", Ints{12}}, {"rank", 2}, {"ranks", 2}}),
              HasSubstr("rank must be one of 2, got 2"));
}

TEST(Reductions, RemoveAxesOrKeepThemAsOne) {
  EXPECT_EQ(infer(Op::sum, {f32({B, 3, 4})}), Types{f32({})});
  EXPECT_EQ(infer(Op::sum, {f32({B, 3, 4})}, {{"axes", Ints{0, -1}}}), Types{f32({3})});
  EXPECT_EQ(infer(Op::mean, {f32({B, 3})}, {{"axes", Ints{0}}, {"keep_dims", true}}), Types{f32({1, 3})});
  EXPECT_EQ(infer(Op::mean, {f32({0, 3})}, {{"axes", Ints{0}}}), Types{f32({3})});  // NaN, the mean of no elements
  EXPECT_THAT(refused(Op::max, {f32({0, 3})}, {{"axes", Ints{0}}}), HasSubstr("is empty"));
  EXPECT_EQ(infer(Op::max, {f32({0, 3})}, {{"axes", Ints{1}}}), Types{f32({0})});
  EXPECT_THAT(refused(Op::sum, {f32({2, 3})}, {{"axes", Ints{1, -1}}}), HasSubstr("axis 1 is given twice in [1, -1]"));
}

TEST(Reshape, KeepsTheElementsWhateverTheBatch) {
  EXPECT_EQ(infer(Op::reshape, {f32({B, 64})}, {{"shape", Ints{-64}}}), Types{f32({-64})});
  EXPECT_EQ(infer(Op::reshape, {f32({-64})}, {{"shape", Ints{-1, 64}}}), Types{f32({B, 64})});
  EXPECT_EQ(infer(Op::reshape, {f32({B, 5, 8})}, {{"shape", Ints{-5, 8}}}), Types{f32({-5, 8})});
  EXPECT_EQ(infer(Op::reshape, {f32({1})}, {{"shape", Ints{}}}), Types{f32({})});
  EXPECT_EQ(infer(Op::reshape, {f32({0, 5})}, {{"shape", Ints{0}}}), Types{f32({0})});
}

TEST(Reshape, DoesNotInferADimension) {
  EXPECT_EQ(refused(Op::reshape, {f32({4, 64})}, {{"shape", Ints{-1, 64}}}),
            "reshape: f32[4, 64] and f32[batch, 64] differ in their number of elements");
  EXPECT_THAT(refused(Op::reshape, {f32({B, 64})}, {{"shape", Ints{-1, -64}}}), HasSubstr("differ in their number of elements"));
  EXPECT_THAT(refused(Op::reshape, {f32({1})}, {{"shape", Ints{INT64_MAX, 4}}}), HasSubstr("more elements than fit in 64 bits"));
}

TEST(Movement, BroadcastToStretchesOnesOnly) {
  EXPECT_EQ(infer(Op::broadcast_to, {f32({1, 4})}, {{"shape", Ints{B, 3, 4}}}), Types{f32({B, 3, 4})});
  EXPECT_THAT(refused(Op::broadcast_to, {f32({2, 4})}, {{"shape", Ints{4, 4}}}), HasSubstr("only dimensions of size 1 stretch"));
  EXPECT_THAT(refused(Op::broadcast_to, {f32({2, 4})}, {{"shape", Ints{4}}}), HasSubstr("does not broadcast"));
}

TEST(Movement, TransposeTakesAPermutation) {
  EXPECT_EQ(infer(Op::transpose, {i32({B, 3, 4})}, {{"order", Ints{2, 0, 1}}}), Types{i32({4, B, 3})});
  EXPECT_THAT(refused(Op::transpose, {f32({2, 3})}, {{"order", Ints{0, 0}}}), HasSubstr("order [0, 0] is not a permutation"));
  EXPECT_THAT(refused(Op::transpose, {f32({2, 3})}, {{"order", Ints{0}}}), HasSubstr("is not a permutation"));
}

TEST(Movement, PiecesAlongAnAxis) {
  EXPECT_EQ(infer(Op::slice, {f32({B, 5})}, {{"axis", 1}, {"start", 1}, {"end", 4}}), Types{f32({B, 3})});
  EXPECT_EQ(infer(Op::slice, {f32({5})}, {{"axis", 0}, {"start", 2}, {"end", 2}}), Types{f32({0})});
  EXPECT_EQ(infer(Op::pad, {f32({B, 5})}, {{"axis", -1}, {"before", 1}, {"after", 2}}), Types{f32({B, 8})});
  EXPECT_EQ(infer(Op::split, {f32({B, 5})}, {{"sizes", Ints{3, 0, 2}}}), (Types{f32({B, 3}), f32({B, 0}), f32({B, 2})}));
  EXPECT_EQ(infer(Op::concat, {f32({B, 5}), f32({B, 0}), f32({B, 2})}), Types{f32({B, 7})});
}

TEST(Movement, PiecesMustFit) {
  EXPECT_THAT(refused(Op::slice, {f32({5})}, {{"axis", 0}, {"start", 1}, {"end", 6}}),
              HasSubstr("[1:6] is not within dimension 0 of f32[5]"));
  EXPECT_THAT(refused(Op::pad, {f32({5})}, {{"axis", 0}, {"before", -1}}), HasSubstr("must not be negative"));
  EXPECT_THAT(refused(Op::split, {f32({5})}, {{"sizes", Ints{3, 3}}}), HasSubstr("do not sum to dimension 0 of f32[5]"));
  EXPECT_THAT(refused(Op::split, {f32({5})}, {{"sizes", Ints{3}}}), HasSubstr("do not sum"));
  EXPECT_THAT(refused(Op::concat, {f32({2, 5}), f32({3, 5})}), HasSubstr("xs[1] is f32[3, 5]"));
  EXPECT_THAT(refused(Op::concat, {}), HasSubstr("at least one input"));
}

TEST(Movement, TheBatchIsNotCut) {
  const auto why = HasSubstr("depends on the batch, so its size is not known yet");
  EXPECT_THAT(refused(Op::slice, {f32({B, 5})}, {{"axis", 0}, {"end", 1}}), why);
  EXPECT_THAT(refused(Op::pad, {f32({B, 5})}, {{"axis", 0}}), why);
  EXPECT_THAT(refused(Op::split, {f32({B, 5})}, {{"axis", 0}, {"sizes", Ints{1}}}), why);
  EXPECT_THAT(refused(Op::concat, {f32({B, 5}), f32({B, 5})}, {{"axis", 0}}), why);
}

TEST(Update, TheFactorAndTheOptimizerTakeScalars) {
  EXPECT_EQ(infer(Op::gradient_norm, {f32({3}), bf16({2, 2})}), (Types{f64({}), boolean({})}));
  EXPECT_EQ(infer(Op::gradient_norm, {}), (Types{f64({}), boolean({})}));
  EXPECT_EQ(infer(Op::gradient_squares, {f32({3}), bf16({5, 1024}), f64({1025})}), Types{f64({1 + 5 + 2})});
  EXPECT_EQ(infer(Op::gradient_squares, {}), Types{f64({0})});
  EXPECT_THAT(refused(Op::gradient_squares, {i32({3})}), HasSubstr("must be floating (f32, f64, bf16, f16), got i32[3]"));
  EXPECT_EQ(infer(Op::norm_of_squares, {f64({8})}, {{"tensors", Ints{0, 1, 1, 7}}}), (Types{f64({}), boolean({})}));
  EXPECT_THAT(refused(Op::norm_of_squares, {f64({8})}, {{"tensors", Ints{2, 7}}}), HasSubstr("7 blocks from 2 exceed f64[8]"));
  EXPECT_EQ(infer(Op::step_factor, {f64({}), boolean({}), f64({})}), (Types{f32({}), f64({}), boolean({})}));
  EXPECT_EQ(infer(Op::adamw, {f32({3}), f32({}), boolean({}), f64({2})}), Types{});
  EXPECT_THAT(refused(Op::step_factor, {f64({}), boolean({}), f32({})}), HasSubstr("count must be f64[], got f32[]"));
  EXPECT_EQ(infer(Op::average, {f32({3}), boolean({}), f64({2})}, {{"decay", 0.5}}), Types{});
  EXPECT_THAT(refused(Op::average, {f32({3}), f32({}), f64({2})}, {{"decay", 0.5}}), HasSubstr("skip must be bool[], got f32[]"));
  EXPECT_THAT(refused(Op::average, {f32({3}), boolean({}), f64({2})}, {{"decay", 1}}), HasSubstr("decay must be in [0, 1), got 1"));
  EXPECT_THAT(refused(Op::step_factor, {f64({}), boolean({}), f64({})}, {{"seed", 0}}), HasSubstr("seed must be in (0, inf], got 0"));
  EXPECT_THAT(refused(Op::adamw, {f32({3}), f32({}), boolean({}), f32({2})}), HasSubstr("rates must be f64[2], got f32[2]"));
}

}  // namespace
}  // namespace st
