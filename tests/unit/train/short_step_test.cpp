#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "training.h"

namespace st {
namespace {

constexpr int64_t kContext = 7, kVocabulary = 17;  // of odd_gpt()

/// A GPT in training, and rows for it.
class ShortStep : public ::testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Trainer> trainer(int64_t batch, int64_t micro_batches, double dropout = 0.1) const {
    Training training{.device = GetParam(), .threads = 2, .recipe = {.batch = batch, .accumulate = micro_batches}};
    training.recipe.dropout = dropout;
    return training.trainer(false);
  }

  std::vector<HostView> rows(int64_t count) const {
    return {plain_view("tokens", DType::i32, {count, kContext}, tokens_.data()),
            plain_view("targets", DType::i32, {count, kContext}, tokens_.data() + 1)};
  }

 private:
  static std::vector<int32_t> tokens() {
    std::vector<int32_t> made(64 * kContext + 1);
    for (size_t i = 0; i < made.size(); ++i) made[i] = static_cast<int32_t>((i * i + 3 * i) % kVocabulary);
    return made;
  }
  std::vector<int32_t> tokens_ = tokens();
};

void expect_equal(const StepReport& a, const StepReport& b) {
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.grad_norm, b.grad_norm);
  EXPECT_EQ(a.tokens, b.tokens);
}

TEST_P(ShortStep, MicroBatchesWithoutRowsAddNothing) {
  const auto few = trainer(4, 2), many = trainer(4, 5);
  for (int step = 0; step < 3; ++step) expect_equal(many->step(rows(8)), few->step(rows(8)));
  EXPECT_EQ(many->state_digest(), few->state_digest());
}

TEST_P(ShortStep, OneMicroBatchWithFewerRowsIsOneOfThatSize) {
  const auto small = trainer(3, 1), large = trainer(7, 1);
  for (int step = 0; step < 3; ++step) expect_equal(large->step(rows(3)), small->step(rows(3)));
  EXPECT_EQ(large->state_digest(), small->state_digest());
}

// Four rows and two equal three times two, except for the order of sums.
TEST_P(ShortStep, AShortLastMicroBatchCountsByItsRows) {
  const auto ragged = trainer(4, 3, 0), even = trainer(2, 3, 0);
  for (int step = 0; step < 3; ++step) {
    const StepReport a = ragged->step(rows(6)), b = even->step(rows(6));
    EXPECT_NEAR(a.loss, b.loss, 1e-6 * b.loss);
    EXPECT_NEAR(a.grad_norm, b.grad_norm, 1e-5 * b.grad_norm);
    EXPECT_EQ(a.tokens, b.tokens);
  }
}

// Dropout's random numbers depend on the sample's position in the step, not on its micro-batch.
TEST_P(ShortStep, DropsTheSameOut) {
  const auto ragged = trainer(4, 2, 0.5), even = trainer(2, 3, 0.5);
  const StepReport a = ragged->step(rows(6)), b = even->step(rows(6));
  EXPECT_NEAR(a.loss, b.loss, 1e-6 * b.loss);
}

TEST_P(ShortStep, InSlicesGivesTheSameBits) {
  const auto whole = trainer(4, 3), sliced = trainer(4, 3);
  for (const int64_t count : {12, 6, 3, 8, 9, 12}) {
    const StepReport expected = whole->step(rows(count));
    std::optional<StepReport> made;
    while (!made) made = sliced->advance(rows(count), 0);
    expect_equal(*made, expected);
  }
  EXPECT_EQ(sliced->state_digest(), whole->state_digest());
}

TEST_P(ShortStep, GoesOnWithTheSameRowsOnly) {
  const auto disturbed = trainer(4, 3), calm = trainer(4, 3);
  ASSERT_FALSE(disturbed->advance(rows(6), 0));
  EXPECT_THROW(disturbed->advance(rows(5), 0), Error);
  expect_equal(disturbed->step(rows(6)), calm->step(rows(6)));
  EXPECT_EQ(disturbed->state_digest(), calm->state_digest());
}

TEST_P(ShortStep, CancelledAnywhereLeavesTheStateOfTheLastWholeStep) {
  const auto disturbed = trainer(4, 2), calm = trainer(4, 2);
  bool cancelled = true;
  for (int slices = 1; cancelled; ++slices) {
    cancelled = true;
    for (int i = 0; i < slices && cancelled; ++i) cancelled = !disturbed->advance(rows(6), 0);
    if (!cancelled) break;
    disturbed->cancel();
    try {
      while (!disturbed->advance(rows(6), 0)) {
      }
      cancelled = false;  // the update had begun
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::cancelled);
    }
  }
  disturbed->take_cancel();
  calm->step(rows(6));
  EXPECT_EQ(disturbed->state_digest(), calm->state_digest());
}

TEST_P(ShortStep, ItsGradientIsGivenOut) {
  const auto gradient = [&](int64_t batch) {
    const auto t = trainer(batch, 1);
    t->step(rows(3));
    const Slot& slot = t->model().slot(t->model().parameters()[0]);
    std::vector<float> values(static_cast<size_t>(slot.type.shape.elements()));
    t->gradient(slot.name, plain_view(slot.name, DType::f32, slot.type.shape, values.data()));
    return values;
  };
  const std::vector<float> small = gradient(3);
  EXPECT_EQ(small, gradient(7));
  EXPECT_TRUE(std::ranges::any_of(small, [](float g) { return g != 0; }));
}

TEST_P(ShortStep, CountsAndGivesBackItsPlans) {
  const auto t = trainer(12, 2);
  t->step(rows(24));
  const int64_t before = t->memory_bytes();
  for (int64_t count = 1; count < 12; ++count) t->step(rows(count));
  EXPECT_GT(t->memory_bytes(), before);
  EXPECT_EQ(t->memory_bytes(), t->model().context().backend().allocated_bytes());
  t->trim();
  EXPECT_EQ(t->memory_bytes(), before);
}

TEST_P(ShortStep, RowsWithGapsAreTheSameRows) {
  const auto strided = trainer(4, 2), plain = trainer(4, 2);
  const std::vector<HostView> together = rows(6);
  std::vector<HostView> apart = together;
  std::vector<std::vector<int32_t>> memory;
  for (HostView& view : apart) {  // column-major, with every second place unused
    std::vector<int32_t>& columns = memory.emplace_back(2 * 6 * kContext, -7);
    for (int64_t r = 0; r < 6; ++r)
      for (int64_t c = 0; c < kContext; ++c)
        columns[static_cast<size_t>(2 * (c * 6 + r))] = static_cast<const int32_t*>(view.data)[r * kContext + c];
    view.strides = {2, 12};
    view.data = columns.data();
  }
  for (int step = 0; step < 2; ++step) expect_equal(strided->step(apart), plain->step(together));
  EXPECT_EQ(strided->state_digest(), plain->state_digest());
}

INSTANTIATE_TEST_SUITE_P(Devices, ShortStep, ::testing::Values("reference", "cpu"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace st
