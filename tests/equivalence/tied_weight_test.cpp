// Rule 3 of traps.md: each use of a tied weight has a separate gradient until the boundary. Each use sums its micro-batches in order; then
// the uses are added in graph order; then the norm is taken. Bitwise.
#include <gtest/gtest.h>

#include "ir/verify.h"
#include "models/gpt.h"
#include "passes/accumulate.h"
#include "passes/autodiff.h"
#include "passes/clip.h"
#include "passes/dropout.h"
#include "passes/scale_loss.h"
#include "program_run.h"

namespace st {
namespace {

constexpr int64_t kMicroBatches = 3, kRows = 2, kContext = 7, kVocabulary = 17;
const std::string kEmbedding = "gradient.token_embedding.weight", kHead = kEmbedding + ".use1";

Program differentiated() {
  Program program = bind(build_gpt({.layers = 2, .width = 12, .heads = 3, .context = kContext, .vocabulary = kVocabulary}), kRows);
  set_dropout(program, 0, 0);
  scale_loss(program, kMicroBatches);
  autodiff(program);
  return program;
}

std::vector<int32_t> tokens_of(int64_t micro_batch, int64_t shift) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < kRows * kContext; ++i) tokens.push_back(static_cast<int32_t>((micro_batch * 5 + i * 3 + shift) % kVocabulary));
  return tokens;
}

void add(std::vector<float>& sum, const std::vector<float>& piece) {
  if (sum.empty()) {
    sum = piece;
  } else {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += piece[i];
  }
}

TEST(TiedWeight, EachUseIsSummedOverMicroBatchesAndThenTheUsesInGraphOrder) {
  std::vector<float> embedding, head;
  for (int64_t k = 0; k < kMicroBatches; ++k) {
    ProgramRun alone(differentiated());
    const auto tokens = tokens_of(k, 0), targets = tokens_of(k, 1);
    alone.bind("tokens", tokens.data());
    alone.bind("targets", targets.data());
    alone.run();
    add(embedding, alone.floats(kEmbedding));
    add(head, alone.floats(kHead));
  }
  std::vector<float> wanted = embedding;
  add(wanted, head);

  Program program = differentiated();
  accumulate(program, kMicroBatches);
  clip(program, 1);
  verify(program, "clip");
  ProgramRun together(program, kMicroBatches);
  std::vector<int32_t> tokens, targets;
  together.run([&](int64_t k) {
    tokens = tokens_of(k, 0);
    targets = tokens_of(k, 1);
    together.bind("tokens", tokens.data());
    together.bind("targets", targets.data());
  });
  EXPECT_EQ(together.floats(kEmbedding), wanted);
  EXPECT_EQ(together.floats(kHead), head);

  // Another order of the same sums has other bits, so the equality above is meaningful.
  std::vector<float> mixed;
  for (int64_t k = 0; k < kMicroBatches; ++k) {
    ProgramRun alone(differentiated());
    const auto t = tokens_of(k, 0), y = tokens_of(k, 1);
    alone.bind("tokens", t.data());
    alone.bind("targets", y.data());
    alone.run();
    auto both = alone.floats(kEmbedding);
    add(both, alone.floats(kHead));
    add(mixed, both);
  }
  EXPECT_NE(mixed, wanted);
}

}  // namespace
}  // namespace st
