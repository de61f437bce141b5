// A host op on many threads: predictors run it concurrently, also while a trainer runs it.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "squared_text.h"

namespace {

using namespace st::test;

constexpr int kThreads = 4;

/// Calls `body` on each thread, with the thread's number.
template <class Body>
void on_threads(const Body& body) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(body, t);
  for (std::thread& thread : threads) thread.join();
}

TEST(HostOpThreads, RunsOfAPredictorAreInsideItAtOnce) {
  HostSquare square;
  const SquaredText run(&square);
  const auto predictor = hold<HeldPredictor>(st_predictor_create, run.model, nullptr);
  std::mutex mutex;
  std::condition_variable all_are_in;
  int inside = 0;
  square.forward = [&] {  // no thread leaves before all have arrived
    std::unique_lock lock(mutex);
    ++inside;
    all_are_in.notify_all();
    const bool met = all_are_in.wait_for(lock, std::chrono::seconds(60), [&] { return inside >= kThreads; });
    return st_status{met ? ST_OK : 77};
  };
  on_threads([&](int) { run.answer(predictor); });
  EXPECT_EQ(inside, kThreads);
}

thread_local bool here_it_fails = false;

TEST(HostOpThreads, AFailureIsOfTheRunThatItHappenedIn) {
  HostSquare square;
  square.forward = [] { return st_status{here_it_fails ? 77 : ST_OK}; };
  const SquaredText run(&square);
  const auto predictor = hold<HeldPredictor>(st_predictor_create, run.model, nullptr);
  const std::string before = run.answer(predictor);
  on_threads([&](int t) {
    for (int i = 0; i < 20; ++i) {
      here_it_fails = t % 2 == 0 && i % 2 == 0;
      st_status status = ST_OK;
      const std::string answer = run.answer(predictor, &status);
      if (here_it_fails) {
        EXPECT_TRUE(fails(ST_CALLBACK, status, {"square", "returned 77"}));
      } else {
        EXPECT_TRUE(works(status));
        EXPECT_EQ(answer, before);
      }
    }
  });
}

/// The net's answers after each of `steps` steps, by the library's own op.
std::set<std::string> answers_of_whole_steps(int steps) {
  const SquaredText own(nullptr);
  const auto predictor = hold<HeldPredictor>(st_predictor_create, own.model, nullptr);
  std::set<std::string> answers = {own.answer(predictor)};
  for (int step = 0; step < steps; ++step) {
    EXPECT_TRUE(works(st_trainer_step(own.trainer, 0, nullptr, nullptr)));
    EXPECT_TRUE(works(st_predictor_refresh(predictor)));
    answers.insert(own.answer(predictor));
  }
  return answers;
}

TEST(HostOpThreads, BesideATrainerEachAnswerIsThatOfOneWholeStep) {
  constexpr int kSteps = 20;
  const std::set<std::string> whole = answers_of_whole_steps(kSteps);
  ASSERT_EQ(whole.size(), kSteps + 1U);
  HostSquare square;
  const SquaredText run(&square);
  const auto predictor = hold<HeldPredictor>(st_predictor_create, run.model, nullptr);
  std::atomic<bool> training{true};
  std::thread trainer([&] {
    EXPECT_TRUE(works(st_trainer_run(run.trainer, kSteps, nullptr, nullptr)));
    training = false;
  });
  std::vector<std::set<std::string>> seen(kThreads);
  on_threads([&](int t) {
    for (bool more = true; more;) {
      more = training;  // asked once more after the last step
      EXPECT_TRUE(works(st_predictor_refresh(predictor)));
      seen[static_cast<size_t>(t)].insert(run.answer(predictor));
    }
  });
  trainer.join();
  for (const auto& mine : seen) {
    EXPECT_TRUE(std::ranges::includes(whole, mine)) << "an answer that belongs to no whole step";
    EXPECT_FALSE(mine.empty());
  }
}

}  // namespace
