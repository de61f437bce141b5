// A covering selection of tests/equivalence on the simulated device, or on a GPU: any two settings that change no bit occur in one
// training, which ends in the state of one rank. Micro-batches are ragged, and so are their rounds.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "device_name.h"
#include "equivalence/rank_training.h"
#include "saved_trainer.h"

namespace st {
namespace {

/// Results depend on these settings, on the tensor degree and on the optimizer.
enum class Numbers { fp32, bf16, fp16 };

/// The checkpoint after the second of three steps.
enum class Resume { none, of_one_rank, by_one_rank };

/// A setting's place among its values; 0: that of one rank.
struct Selected {
  Numbers numbers;
  int tensor, optimizer;
  int data, zero, schedule, recompute, offload, recordings, resume, overlap;
};
constexpr const char* kOptimizers[] = {"adamw", "adamw-8bit"};
constexpr const char* kSchedules[] = {"", "1f1b", "zb-h1", "interleaved", "zb-v"};
constexpr const char* kRecomputes[] = {"none", "attention", "full"};
constexpr const char* kOffloads[] = {"none", "optimizer", "parameters", "gradients"};
constexpr const char* kOverlaps[] = {"off", "on"};

using enum Numbers;
// The streams of a process have one order, with which any setting occurs too. Each order has one rank's training of its own to compare
// with, so rows with the same numbers, tensor degree and optimizer have few orders.
constexpr Selected kEager[] = {{fp32, 1, 0, 1, 0, 1, 0, 0, 0, 1, 0}, {fp32, 1, 0, 2, 2, 3, 0, 3, 0, 2, 0},
                               {fp32, 1, 0, 2, 3, 4, 2, 0, 1, 0, 1}, {fp32, 1, 0, 3, 1, 2, 0, 3, 0, 0, 0},
                               {bf16, 2, 0, 2, 1, 1, 1, 2, 1, 1, 0}, {fp16, 2, 1, 2, 1, 0, 2, 1, 1, 1, 0}};
constexpr Selected kLate[] = {
    {fp32, 1, 0, 2, 1, 3, 2, 0, 1, 1, 1}, {fp32, 1, 0, 3, 2, 4, 0, 2, 1, 1, 1}, {fp32, 2, 1, 1, 0, 3, 0, 1, 1, 0, 0},
    {fp32, 2, 1, 1, 0, 4, 2, 3, 1, 1, 0}, {bf16, 2, 0, 2, 2, 2, 2, 1, 0, 2, 1}, {bf16, 2, 0, 2, 3, 0, 0, 3, 1, 0, 0},
    {fp16, 1, 0, 1, 0, 0, 1, 2, 0, 2, 0}, {fp16, 1, 0, 2, 2, 1, 1, 3, 0, 0, 1}, {fp16, 1, 0, 2, 3, 2, 2, 2, 0, 1, 1}};
constexpr Selected kRandom[] = {{fp32, 1, 0, 2, 0, 0, 0, 3, 1, 1, 1}, {fp32, 1, 0, 2, 1, 4, 1, 1, 0, 2, 0},
                                {fp32, 1, 0, 3, 3, 3, 1, 2, 0, 1, 1}, {bf16, 1, 1, 1, 0, 2, 1, 0, 1, 2, 1},
                                {bf16, 1, 1, 3, 0, 0, 2, 2, 0, 0, 1}, {bf16, 1, 1, 3, 3, 1, 2, 1, 0, 2, 1},
                                {fp16, 2, 1, 3, 2, 0, 0, 0, 0, 2, 1}};

/// With 8 bits the embedding is of the least size whose moments are coded.
int64_t vocabulary_of(const Selected& s) { return s.optimizer == 0 ? 6 : 1024; }

Training training_of(const Selected& s) {
  Training made{.device = kDevice, .recipe = {.batch = 2}};
  made.options = {.layers = s.numbers == fp32 ? 2 : 1, .width = 4, .heads = 2, .context = 2, .vocabulary = vocabulary_of(s)};
  made.recipe.micro_batches = 3;
  made.recipe.set("warmup", "2");
  const auto quoted = [](const char* word) { return text('"', word, '"'); };
  if (s.numbers == fp32) made.recipe.set("dropout", "0.1");
  if (s.numbers == bf16) made.recipe.set("ema_decay", "0.9");
  if (s.numbers == fp16) made.recipe.set("accumulate_dtype", "\"fp16\"");
  for (const char* const key : {"precision", "gradient_dtype"})
    made.recipe.set(key, quoted(s.numbers == fp32 ? "fp32" : s.numbers == bf16 ? "bf16" : "fp16"));
  const int64_t stages = s.schedule == 0 ? 1 : 2;
  made.recipe.ranks = s.data * s.tensor * stages;
  made.recipe.tensor = s.tensor;
  made.recipe.stages = stages;
  made.recipe.zero = s.zero;
  if (stages > 1) made.recipe.set("schedule", quoted(kSchedules[s.schedule]));
  made.recipe.set("optimizer", quoted(kOptimizers[s.optimizer]));
  made.recipe.set("overlap", quoted(kOverlaps[s.overlap]));
  made.recipe.set("recompute", quoted(kRecomputes[s.recompute]));
  made.recipe.set("offload", quoted(kOffloads[s.offload]));
  return made;
}

std::string recipe_of(const Selected& s) { return text(training_of(s).recipe.json(), s.recordings == 0 ? "" : ", nothing recorded"); }
void PrintTo(const Selected& s, std::ostream* out) { *out << recipe_of(s); }

/// The training of one rank, or of the tensor ranks alone.
struct Alone {
  Outcome whole;
  std::string saved;  // after two steps
};

/// Rounds that are full, and one with two micro-batches, the second of one row.
constexpr int64_t kRows[] = {6, 3, 6};

void step(const Selected& s, Trainer& trainer, int64_t from, int64_t to, Outcome& outcome) {
  const TokenRows rows(6, 2, vocabulary_of(s));
  for (int64_t at = from; at < to; ++at) add(outcome, trainer.step(rows.first(kRows[at])));
  outcome.state = trainer.state_digest();
}

/// One rank's choice of all settings that change no bit.
Selected one_rank(const Selected& like) { return {.numbers = like.numbers, .tensor = like.tensor, .optimizer = like.optimizer, .data = 1}; }

class SimulatedEquivalence : public testing::TestWithParam<Selected> {
 protected:
  static void SetUpTestSuite() { folder_ = std::make_unique<ScratchFolder>("simulated_equivalence"); }
  static void TearDownTestSuite() {
    folder_.reset();
    alone_.clear();
  }
  static const Alone& alone(const Selected& like) {
    const auto key = std::tuple(like.numbers, like.tensor, like.optimizer);
    if (const auto found = alone_.find(key); found != alone_.end()) return found->second;
    const auto trainer = training_of(one_rank(like)).trainer(false);
    Alone made{.whole = {}, .saved = *folder_ / text(static_cast<int>(like.numbers), "of", like.tensor, kOptimizers[like.optimizer])};
    step(like, *trainer, 0, 2, made.whole);
    save(*trainer, made.saved);
    step(like, *trainer, 2, 3, made.whole);
    EXPECT_LT(made.whole.skipped, 2);
    const auto is_coded = [](const StateTensor& tensor) { return tensor.type.dtype == DType::u8; };
    EXPECT_EQ(std::ranges::any_of(trainer->state_tensors(), is_coded), like.optimizer != 0);
    return alone_.emplace(key, std::move(made)).first->second;
  }
  static inline std::unique_ptr<ScratchFolder> folder_;

 private:
  static inline std::map<std::tuple<Numbers, int, int>, Alone> alone_;
};

INSTANTIATE_TEST_SUITE_P(Eager, SimulatedEquivalence, testing::ValuesIn(kEager));
INSTANTIATE_TEST_SUITE_P(Late, SimulatedEquivalence, testing::ValuesIn(kLate));
INSTANTIATE_TEST_SUITE_P(Random, SimulatedEquivalence, testing::ValuesIn(kRandom));

TEST_P(SimulatedEquivalence, HasTheStateOfOneRank) {
  const Selected& s = GetParam();
  const Alone& one = alone(s);
  std::optional<NoRecordings> unrecorded;
  if (s.recordings != 0) unrecorded.emplace();
  const auto trainer = training_of(s).trainer(false);
  Outcome made;
  const auto resume_of = static_cast<Resume>(s.resume);
  if (resume_of == Resume::of_one_rank) {
    resume_from(one.saved, *trainer);
    made.told.assign(one.whole.told.begin(), one.whole.told.begin() + static_cast<int64_t>(one.whole.told.size() / 3 * 2));
    step(s, *trainer, 2, 3, made);
  } else if (resume_of == Resume::by_one_rank) {
    step(s, *trainer, 0, 2, made);
    save(*trainer, *folder_ / "split");
    const auto other = training_of(one_rank(s)).trainer(false);
    resume_from(*folder_ / "split", *other);
    std::filesystem::remove_all(*folder_ / "split");
    step(s, *other, 2, 3, made);
  } else {
    step(s, *trainer, 0, 3, made);
  }
  EXPECT_EQ(made, one.whole);
}

/// The order of streams is a setting too. Two kinds of pairs do not exist: ZeRO has no effect on one data rank, and a schedule with two
/// parts a stage needs the larger model, which is that of fp32.
TEST(SimulatedEquivalences, HaveAnyTwoSettingsInOneTraining) {
  constexpr std::array kCounts = {3, 2, 2, 3, 4, 5, 3, 4, 2, 3, 2, 3};
  constexpr size_t kNumbers = 0, kData = 3, kZero = 4, kSchedule = 5;
  using Places = std::array<int, kCounts.size()>;
  std::vector<Places> all;
  const std::array<std::span<const Selected>, 3> by_order = {kEager, kLate, kRandom};
  for (int order = 0; order < 3; ++order)
    for (const Selected& s : by_order[static_cast<size_t>(order)])
      all.push_back({static_cast<int>(s.numbers), s.tensor - 1, s.optimizer, s.data - 1, s.zero, s.schedule, s.recompute, s.offload,
                     s.recordings, s.resume, s.overlap, order});
  for (size_t i = 0; i < kCounts.size(); ++i)
    for (size_t j = i + 1; j < kCounts.size(); ++j)
      for (int a = 0; a < kCounts[i]; ++a)
        for (int b = 0; b < kCounts[j]; ++b)
          if ((i != kData || j != kZero || a > 0 || b == 0) && (i != kNumbers || j != kSchedule || a == 0 || b < 3)) {
            EXPECT_TRUE(std::ranges::any_of(all, [&](const Places& at) { return at[i] == a && at[j] == b; }))
                << "setting " << i << " at " << a << ", setting " << j << " at " << b;
          }
}

}  // namespace
}  // namespace st
