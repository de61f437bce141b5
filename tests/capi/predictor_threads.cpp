// Many threads predict while one trains and all refresh: each answer belongs to one whole step.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>

#include "small_run.h"

namespace {

using namespace st::test;

using Clock = std::chrono::steady_clock;

constexpr int kCallers = 8;

/// Logits of the small GPT for one row, as bits.
class Asker {
 public:
  explicit Asker(st_predictor* predictor) : predictor_(predictor) {}
  std::string answer() {
    const int64_t in_dims[] = {1, kSmallContext}, out_dims[] = {1, kSmallContext, 256};
    const auto bytes = static_cast<int64_t>(logits_.size() * 4);
    const st_named_view in = {"tokens", {ST_I32, 2, in_dims, nullptr, tokens_.data(), kSmallContext * 4}};
    const st_named_view out = {"logits", {ST_F32, 3, out_dims, nullptr, logits_.data(), bytes}};
    EXPECT_TRUE(works(st_predictor_run(predictor_, 1, &in, 1, &out)));
    return {reinterpret_cast<const char*>(logits_.data()), static_cast<size_t>(bytes)};
  }

 private:
  st_predictor* predictor_;
  std::vector<int32_t> tokens_ = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<float> logits_ = std::vector<float>(kSmallContext * 256);
};

struct Whole {  // the net's answers after each whole step
  st_predictor* own;
  std::set<std::string> answers;
  std::atomic<bool>* is_seen = nullptr;  // whether another thread has an answer of weights after a step; null: training waits for none
  static st_status keep(void* user, const st_step_report*) {
    auto& self = *static_cast<Whole*>(user);
    EXPECT_TRUE(works(st_predictor_refresh(self.own)));
    self.answers.insert(Asker(self.own).answer());
    if (self.is_seen == nullptr) return ST_OK;
    for (const auto end = Clock::now() + std::chrono::minutes(1); !*self.is_seen && Clock::now() < end;) std::this_thread::yield();
    EXPECT_TRUE(*self.is_seen) << "no thread sees new weights";
    return *self.is_seen ? ST_OK : ST_CANCELLED;
  }
};

TEST(PredictorThreads, EachAnswerIsThatOfOneWholeStep) {
  SmallRun run(text_file("predictor_threads.txt", 3000));
  const auto predictor = hold<HeldPredictor>(st_predictor_create, run.model, nullptr);
  const auto own = hold<HeldPredictor>(st_predictor_create, run.model, nullptr);
  const std::string first = Asker(own).answer();
  std::atomic<bool> training{true}, is_seen{false};
  Whole whole{own, {first}, &is_seen};
  std::vector<std::set<std::string>> seen(kCallers);
  std::vector<std::thread> threads;
  for (int t = 0; t < kCallers; ++t)
    threads.emplace_back([&, t] {
      Asker asker(predictor);
      for (int i = 0; training || i < 3; ++i) {
        if (i % 16 == t) {  // rarely: a new snapshot is slow under a sanitizer
          EXPECT_TRUE(works(st_predictor_refresh(predictor)));
        }
        const std::string answer = asker.answer();
        if (answer != first) is_seen = true;
        seen[static_cast<size_t>(t)].insert(answer);
      }
    });
  EXPECT_TRUE(works(st_trainer_run(run.trainer, 10, Whole::keep, &whole)));
  training = false;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(whole.answers.size(), 11U) << "every step changed the answer";
  for (const auto& mine : seen) EXPECT_TRUE(std::ranges::includes(whole.answers, mine)) << "an answer that belongs to no whole step";
}

TEST(PredictorThreads, SharedWeightsAnswerOrAreBusy) {
  SmallRun run(text_file("predictor_shared.txt", 3000));
  HeldPredictor shared;
  auto options = filled(st_predictor_options_init);
  options.shared = 1;
  ASSERT_TRUE(works(st_predictor_create(run.model, &options, shared.out())));
  const auto own = hold<HeldPredictor>(st_predictor_create, run.model, nullptr);
  Whole whole{own, {Asker(own).answer()}};
  std::atomic<bool> training{true};
  std::vector<std::set<std::string>> seen(3);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      const int32_t row[] = {1, 2, 3, 4, 5, 6, 7, 8};
      std::vector<float> logits(kSmallContext * 256);
      const int64_t in_dims[] = {1, kSmallContext}, out_dims[] = {1, kSmallContext, 256};
      const st_named_view in = {"tokens", {ST_I32, 2, in_dims, nullptr, const_cast<int32_t*>(row), sizeof row}};
      const st_named_view out = {"logits", {ST_F32, 3, out_dims, nullptr, logits.data(), kSmallContext * 256 * 4}};
      while (training) {
        const st_status status = st_predictor_run(shared, 1, &in, 1, &out);
        EXPECT_TRUE(status == ST_OK || status == ST_BUSY) << st_last_error();
        if (status == ST_OK) seen[t].insert({reinterpret_cast<const char*>(logits.data()), logits.size() * 4});
      }
    });
  EXPECT_TRUE(works(st_trainer_run(run.trainer, 15, Whole::keep, &whole)));
  training = false;
  for (std::thread& thread : threads) thread.join();
  for (const auto& mine : seen) EXPECT_TRUE(std::ranges::includes(whole.answers, mine)) << "an answer that belongs to no whole step";
}

TEST(PredictorThreads, WriteTextsBesideTraining) {
  SmallRun run(text_file("predictor_texts.txt", 3000));
  const auto predictor = hold<HeldPredictor>(st_predictor_create, run.model, nullptr);
  const auto write = [&] {
    const Written text = written(predictor);
    EXPECT_TRUE(works(text.status));
    return text.tokens;
  };
  const auto alone = write();
  std::thread training([&] { EXPECT_TRUE(works(st_trainer_run(run.trainer, 10, nullptr, nullptr))); });
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t)
    writers.emplace_back([&] {
      for (int i = 0; i < 3; ++i) EXPECT_EQ(write(), alone) << "the snapshot was not refreshed";
    });
  for (std::thread& writer : writers) writer.join();
  training.join();
}

TEST(PredictorThreads, RunsOfManyShapesShareOneCache) {
  SineRun run;
  const auto predictor = hold<HeldPredictor>(st_predictor_create, run.model, nullptr);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 60; ++i) {
        const int64_t rows = 1 + (i + t) % 12;  // more rows than are kept
        std::vector<float> x(static_cast<size_t>(rows), 0.5F), y(static_cast<size_t>(rows), -99);
        const int64_t dims[] = {rows, 1};
        const st_named_view in = {"x", {ST_F32, 2, dims, nullptr, x.data(), rows * 4}};
        const st_named_view out = {"prediction", {ST_F32, 2, dims, nullptr, y.data(), rows * 4}};
        EXPECT_TRUE(works(st_predictor_run(predictor, 1, &in, 1, &out)));
        for (const float v : y) EXPECT_NEAR(v, y[0], 1e-6);
        EXPECT_NE(y[0], -99);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
