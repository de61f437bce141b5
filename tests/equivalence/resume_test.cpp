// A run that is stopped after step k and resumed by a new trainer has bitwise the losses and state of the uninterrupted run (traps.md,
// T23), for each k and for everything that a step depends on.
#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <tuple>

#include "base/os/machine.h"
#include "rank_group.h"
#include "saved_trainer.h"
#include "token_rows.h"

// Replaces the C library's fsync: no power is lost in this test, and a thousand calls would take most of its time.
extern "C" int fsync(int) { return 0; }

namespace st {
namespace {

constexpr int kSteps = 8;

/// A report's values except time and memory, as bits.
using Told = std::tuple<int64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, bool, int64_t>;

Told told(const StepReport& r) {
  const auto bits = [](double value) { return std::bit_cast<uint64_t>(value); };
  return {r.step, bits(r.loss), bits(r.lr), bits(r.grad_norm), bits(r.loss_scale), bits(r.gradient_noise_scale), r.skipped, r.tokens};
}

struct Case {
  std::string name;
  std::vector<std::pair<std::string, std::string>> keys;     // of the recipe
  std::vector<std::pair<std::string, std::string>> resumed;  // keys of the resuming trainer that differ; they change no bit
  int threads = 1;                                           // of the resuming trainer
  GptOptions options = odd_gpt();
  std::function<StepReport(Trainer&)> step = [](Trainer& trainer) { return trainer.step(); };
  bool with_data = true;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

Training training_of(const Case& c, bool resumes) {
  Training made{.device = "cpu", .threads = resumes ? c.threads : 2, .options = c.options, .recipe = {.batch = 3, .accumulate = 3}};
  made.recipe.set("warmup", "5");
  for (const auto& [key, value] : c.keys) made.recipe.set(key, value);
  if (resumes)
    for (const auto& [key, value] : c.resumed) made.recipe.set(key, value);
  return made;
}

/// The k-th batch of a host without data, of 9 rows.
std::vector<HostView> host_rows(int64_t k, int64_t from, int64_t count) {
  static const TokenRows all(9 + kSteps, 7, 17);
  return all.rows(k + from, count);
}

StepReport step_by_host(Trainer& trainer) {
  const int64_t step = trainer.steps();
  for (int64_t k = 0; k < 3; ++k) {
    const auto outputs = trainer.forward(host_rows(step, 3 * k, 3));
    std::vector<float> gradient(static_cast<size_t>(outputs[0].shape.elements()));
    const auto* logits = static_cast<const float*>(outputs[0].data);
    for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = logits[i] * 0.01F;
    trainer.backward(std::vector{plain_view("logits", DType::f32, outputs[0].shape, gradient.data())});
  }
  return trainer.apply();
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* optimizer : {"adamw", "adam", "adamw-8bit", "sgd", "adafactor", "lion", "rmsprop", "adagrad", "muon"}) {
    Case c{.name = optimizer, .keys = {{"optimizer", text("\"", optimizer, "\"")}}, .resumed = {}};
    // Wide enough for adamw-8bit to store some moments in 8 bits.
    c.options = {.layers = 1, .width = 66, .heads = 3, .context = 7, .vocabulary = 70};
    if (c.name == "sgd") c.keys.insert(c.keys.end(), {{"momentum", "0.9"}, {"nesterov", "true"}});
    if (c.name == "rmsprop") c.keys.insert(c.keys.end(), {{"momentum", "0.9"}, {"centered", "true"}});
    if (c.name == "adagrad") c.keys.insert(c.keys.end(), {{"initial_accumulator_value", "0.1"}, {"rate_decay", "0.05"}});
    all.push_back(std::move(c));
  }
  all.push_back({.name = "sgd_without_state", .keys = {{"optimizer", "\"sgd\""}}, .resumed = {}});
  all.push_back({.name = "dropout", .keys = {{"dropout", "0.2"}}, .resumed = {}, .threads = 3});
  all.push_back({.name = "average", .keys = {{"ema_decay", "0.9"}}, .resumed = {}});
  // The scale overflows at first, grows again after 2 steps, and tolerates one overflow: all of its state matters.
  all.push_back({.name = "fp16",
                 .keys = {{"precision", "\"fp16\""},
                          {"loss_scale_initial", "1e12"},
                          {"loss_scale_backoff_factor", "0.001"},
                          {"loss_scale_growth_factor", "1000"},
                          {"loss_scale_growth_interval", "2"},
                          {"loss_scale_hysteresis", "2"},
                          {"ema_decay", "0.5"},
                          {"dropout", "0.1"}},
                 .resumed = {}});
  all.push_back({.name = "bf16", .keys = {{"precision", "\"bf16\""}}, .resumed = {}});
  all.push_back({.name = "noise_scale", .keys = {{"gradient_noise_scale", "true"}}, .resumed = {}});
  all.push_back({.name = "cosine", .keys = {{"lr_schedule", "\"cosine\""}, {"lr_steps", "7"}}, .resumed = {}});
  all.push_back({.name = "recompute",
                 .keys = {{"dropout", "0.1"}},
                 .resumed = {{"recompute", "\"blocks\""}, {"threads", "3"}, {"tune", "false"}, {"trim_every", "2"}}});
  all.push_back({.name = "groups",
                 .keys = {{"groups", R"([{"pattern": "*.bias", "frozen": true}, {"pattern": "token_*", "clip": 0.5}])"}},
                 .resumed = {}});
  all.push_back({.name = "host_loss", .keys = {{"dropout", "0.1"}}, .resumed = {}, .step = step_by_host, .with_data = false});
  all.push_back({.name = "host_batch",
                 .keys = {},
                 .resumed = {},
                 .step = [](Trainer& trainer) { return trainer.step(host_rows(trainer.steps(), 0, 9 - trainer.steps() % 3)); },
                 .with_data = false});
  all.push_back({.name = "slices", .keys = {{"precision", "\"bf16\""}}, .resumed = {}, .step = [](Trainer& trainer) {
                   for (;;)
                     if (const auto report = trainer.advance(0)) return *report;
                 }});
  return all;
}

class Resumed : public ::testing::TestWithParam<Case> {};

TEST_P(Resumed, AfterAnyStepIsTheRunThatWasNotStopped) {
  const Case& c = GetParam();
  const ScratchFolder folder("resume_" + c.name);
  const auto whole = training_of(c, false).trainer(c.with_data);
  std::vector<Told> wanted;
  for (int k = 0; k < kSteps; ++k) {
    save(*whole, folder / std::to_string(k));
    wanted.push_back(told(c.step(*whole)));
  }
  const std::string digest = whole->state_digest();

  for (int k = 0; k < kSteps; ++k) {
    const auto resumed = training_of(c, true).trainer(c.with_data);
    resume_from(folder / std::to_string(k), *resumed);
    EXPECT_EQ(resumed->steps(), k);
    for (int i = k; i < kSteps; ++i)
      ASSERT_EQ(told(c.step(*resumed)), wanted[static_cast<size_t>(i)]) << "resumed after " << k << ", step " << i + 1;
    EXPECT_EQ(resumed->state_digest(), digest) << "resumed after " << k;
    std::filesystem::remove_all(folder / std::to_string(k));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Resumed, ::testing::ValuesIn(cases()), [](const auto& c) {
  std::string name = c.param.name;
  std::erase(name, '-');
  return name;
});

// Otherwise the cases above would not test these.
TEST(ResumedCases, SkipStepsAndCrossTheDatasEnd) {
  for (const Case& c : cases()) {
    if (c.name != "fp16") continue;
    const auto trainer = training_of(c, false).trainer();
    int skipped = 0, grown = 0;
    double scale = trainer->loss_scale();
    for (int k = 0; k < kSteps; ++k) {
      skipped += trainer->step().skipped ? 1 : 0;
      grown += trainer->loss_scale() > scale ? 1 : 0;
      scale = trainer->loss_scale();
    }
    EXPECT_GE(skipped, 3);
    EXPECT_LT(skipped, kSteps);
    EXPECT_GE(grown, 1);
    EXPECT_GT(kSteps * trainer->rows_per_step(), training_of(c, false).data()->rows());
  }
}

// The table counts successful steps: a skipped step, before or after a resume, uses no entry (traps.md, T14).
TEST(Resumed, LearningRateEqualsItsTableAfterSkippedStepsAndAResume) {
  const ScratchFolder folder("resume_table");
  Training made{.device = "cpu", .recipe = {.batch = 3, .accumulate = 2}};
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{{"lr_schedule", "\"table\""},
                                                                                   {"lr_table", "\"0:0.001,1:0.004,2:0.002,4:0.0005\""},
                                                                                   {"warmup", "0"},
                                                                                   {"precision", "\"fp16\""},
                                                                                   {"loss_scale_initial", "1e12"},
                                                                                   {"loss_scale_backoff_factor", "0.001"},
                                                                                   {"loss_scale_growth_factor", "100000"},
                                                                                   {"loss_scale_growth_interval", "2"}})
    made.recipe.set(key, value);
  const auto rate_after = [](int64_t successes) {
    const double table[] = {0.001, 0.004, 0.002, 0.002};
    return successes < 4 ? table[successes] : 0.0005;
  };
  auto trainer = made.trainer();
  int64_t successes = 0, skipped = 0;
  for (int step = 0; step < 14; ++step) {
    const StepReport report = trainer->step();
    EXPECT_EQ(report.lr, rate_after(successes)) << "step " << report.step;
    (report.skipped ? skipped : successes) += 1;
    save(*trainer, folder / std::to_string(step));
    trainer = made.trainer();
    resume_from(folder / std::to_string(step), *trainer);
  }
  EXPECT_GE(successes, 5) << "past the table's last entry";
  EXPECT_GE(skipped, 3) << "at the start, and when the scale has grown again";
}

TEST(Resumed, AgainInTheSameTrainerGoesBackToThatStep) {
  const ScratchFolder folder("resume_back");
  const auto trainer = Training{.device = "cpu", .recipe = {.batch = 3, .ema_decay = 0.9}}.trainer();
  losses_of(*trainer, 3);
  save(*trainer, folder / "3");
  const std::vector<double> wanted = losses_of(*trainer, 4);
  const std::string digest = trainer->state_digest();
  for (int again = 0; again < 2; ++again) {
    resume_from(folder / "3", *trainer);
    EXPECT_EQ(losses_of(*trainer, 4), wanted);
    EXPECT_EQ(trainer->state_digest(), digest);
  }
}

// A resume is counted as a change before it is known whether it succeeds.
TEST(Resumed, WhereItFailsOnAllRanksTheStateTheyKnowIsTheOneBefore) {
  Training training{.device = "cpu", .recipe = {.batch = 2, .micro_batches = 3}};
  training.recipe.zero = 1;
  training.recipe.device = "cpu";
  const OpenCheckpoint open = []() -> const CheckpointReader& { fail(Code::not_found, "there is none"); };
  each_of_group(2, [&](int rank, Communicator& own) {
    Trainer trainer(training.model(), training.recipe, training.data(), PlanOptions(), &own);
    const std::string before = trainer.state_digest();
    ResumeReport report;
    EXPECT_THROW(resume(trainer, open, {}, report), Error);
    EXPECT_EQ(trainer.state_digest(), before);
    own.barrier("both have it");
    if (rank == 0) {
      EXPECT_EQ(trainer.known_state_digest(), before) << "of one alone, without the other";
    }
    own.barrier("rank 0 has asked nobody");
  });
}

// One rank cannot begin; the others learn it at once, not at the deadline. The ranks then agree on their state: the one that could not
// begin has changed nothing, the other has rolled back.
TEST(Resumed, OnRanksItFailsOnAllWhereOneCannotBegin) {
  const ScratchFolder folder("resume_busy");
  Training training{.device = "cpu", .recipe = {.batch = 2, .micro_batches = 3}};
  const auto alone = training.trainer();
  losses_of(*alone, 1);
  save(*alone, folder / "1");
  const std::string saved = alone->state_digest();
  training.recipe.zero = 1;
  training.recipe.device = "cpu";
  each_of_group(2, [&](int rank, Communicator& own) {
    const auto trainer = std::make_unique<Trainer>(training.model(), training.recipe, training.data(), PlanOptions(), &own);
    const std::string before = trainer->state_digest();
    WeightsGate& gate = trainer->model().gate();
    if (rank == 1) {
      gate.begin_update();
      gate.pause_update();
    }
    const double start = os::seconds();
    const Error error = error_of([&] { resume_from(folder / "1", *trainer); });
    EXPECT_TRUE(error.code() == Code::busy && error.place.rank == 1) << error.message();
    EXPECT_LT(os::seconds() - start, 10);
    if (rank == 1) {
      gate.resume_update();
      gate.end_update();
    }
    EXPECT_EQ(trainer->state_digest(), before);
    resume_from(folder / "1", *trainer);
    EXPECT_EQ(trainer->state_digest(), saved);

    // Rank 0 alone knows the last collective digest, unless its weights were set since.
    if (rank == 0) {
      EXPECT_EQ(trainer->known_state_digest(), saved);
      const SlotId first = trainer->model().parameters()[0];
      const Type& type = trainer->model().slot(first).type;
      const std::vector<float> values(static_cast<size_t>(type.shape.elements()), 0.5F);
      trainer->model().set(first, plain_view("", DType::f32, type.shape, values.data()));
      EXPECT_THROW(static_cast<void>(trainer->known_state_digest()), Error);
    }
    EXPECT_EQ(trainer->state_digest() == saved, rank == 1);
  });
}

}  // namespace
}  // namespace st
