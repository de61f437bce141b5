#include <gtest/gtest.h>

#include "base/error.h"
#include "reference_run.h"

namespace st {
namespace {

TEST(ReferenceErrors, EmbeddingNamesTheTokenItsPlaceAndTheVocabulary) {
  const Array weight = wave({5, 2}, 1);
  EXPECT_EQ(error_of(Op::embedding, {weight, Array::of<int32_t>({2, 3}, {0, 1, 2, 3, 4, 5})}),
            "embedding: token 5 at [1, 2] is outside the vocabulary 0..4; check the tokenizer and the weight's first dimension");
  EXPECT_EQ(error_of(Op::embedding, {weight, Array::of<int64_t>({2}, {0, -1})}),
            "embedding: token -1 at [1] is outside the vocabulary 0..4; check the tokenizer and the weight's first dimension");
  EXPECT_EQ(error_of(Op::embedding_backward, {Array::of<int32_t>({1}, {9}), wave({1, 2}, 1)}, {{"rows", int64_t{5}}}),
            "embedding_backward: token 9 at [0] is outside the vocabulary 0..4; check the tokenizer and the weight's first dimension");
}

TEST(ReferenceErrors, CrossEntropyNamesTheTargetButPassesIgnoredOnes) {
  const Array logits = wave({3, 4}, 1);
  EXPECT_EQ(error_of(Op::cross_entropy, {logits, Array::of<int64_t>({3}, {0, -100, 4})}),
            "cross_entropy: target 4 at [2] is outside the classes 0..3; mark a row without a target with ignore_index");
  const Array ignored_outside = Array::of<int64_t>({3}, {0, 77, 3});
  const std::vector<Array> out = run(Op::cross_entropy, {logits, ignored_outside}, {{"ignore_index", int64_t{77}}});
  EXPECT_EQ(out[1].as<double>()[0], 2);
}

TEST(ReferenceErrors, GatherNamesTheIndex) {
  EXPECT_EQ(error_of(Op::gather, {wave({2, 4}, 1), Array::of<int32_t>({2, 2}, {0, 3, -1, 0})}),
            "gather: index -1 at [1, 0] is outside the axis 0..3; negative indices do not count from the end here");
}

TEST(ReferenceErrors, CarryTheOpAsData) {
  try {
    run(Op::gather, {wave({2, 4}, 1), Array::of<int32_t>({2, 1}, {0, 4})});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.place.op, "gather");
  }
}

}  // namespace
}  // namespace st
