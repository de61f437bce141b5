#include "base/error.h"
#include "conformance.h"

namespace st::conformance {
namespace {

Tensor some(const Shape& shape) { return Tensor(DType::f64, shape); }

std::string refusal_of(Op op, const std::vector<Tensor>& in, const Attrs& attrs = {}) {
  try {
    run_on_reference(op, in, attrs);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_EQ(error.place.op, name_of(op));
    return error.message();
  }
  ADD_FAILURE() << name_of(op) << " threw nothing";
  return {};
}

TEST(ReferenceErrors, EmbeddingNamesTheTokenItsPlaceAndTheVocabulary) {
  EXPECT_EQ(refusal_of(Op::embedding, {some({5, 2}), Tensor::of({2, 3}, {0, 1, 2, 3, 4, 5}, DType::i32)}),
            "embedding: token 5 at [1, 2] is outside the vocabulary 0..4; check the tokenizer and the weight's first dimension");
  EXPECT_EQ(refusal_of(Op::embedding, {some({5, 2}), Tensor::of({2}, {0, -1}, DType::i64)}),
            "embedding: token -1 at [1] is outside the vocabulary 0..4; check the tokenizer and the weight's first dimension");
  EXPECT_EQ(refusal_of(Op::embedding_backward, {Tensor::of({1}, {9}, DType::i32), some({1, 2})}, {{"rows", int64_t{5}}}),
            "embedding_backward: token 9 at [0] is outside the vocabulary 0..4; check the tokenizer and the weight's first dimension");
}

TEST(ReferenceErrors, CrossEntropyNamesTheTargetButPassesIgnoredOnes) {
  EXPECT_EQ(refusal_of(Op::cross_entropy, {some({3, 4}), Tensor::of({3}, {0, -100, 4}, DType::i64)}),
            "cross_entropy: target 4 at [2] is outside the classes 0..3; mark a row without a target with ignore_index");
  const Tensor ignored_outside = Tensor::of({3}, {0, 77, 3}, DType::i64);
  EXPECT_EQ(run_on_reference(Op::cross_entropy, {some({3, 4}), ignored_outside}, {{"ignore_index", int64_t{77}}}).out[1].at(0), 2);
}

TEST(ReferenceErrors, GatherNamesTheIndex) {
  EXPECT_EQ(refusal_of(Op::gather, {some({2, 4}), Tensor::of({2, 2}, {0, 3, -1, 0}, DType::i32)}),
            "gather: index -1 at [1, 0] is outside the axis 0..3; negative indices do not count from the end here");
}

}  // namespace
}  // namespace st::conformance
