// fork: the child of a process with handles has none of its threads and perhaps its locked mutexes. Every call there says so, and none
// hangs.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "small_run.h"

namespace {

using namespace st::test;

constexpr unsigned kHang = 60;  // seconds until a child that hangs is ended by its alarm, which fails the test

/// 0, or the number of the first call that did not answer ST_WRONG_STATE.
int first_wrong_answer(SmallRun& run) {
  int64_t number = 0;
  const char* text = nullptr;
  st_context* context = nullptr;
  st_graph* graph = nullptr;
  st_model* model = nullptr;
  st_recipe* recipe = nullptr;
  st_trainer* trainer = nullptr;
  st_predictor* predictor = nullptr;
  auto stats = filled(st_memory_stats_init);
  auto evaluation = filled(st_evaluation_init);
  const st_status answers[] = {st_context_create(nullptr, &context),
                               st_context_memory(run.context, &stats),
                               st_context_cancel(run.context),
                               st_context_trim(run.context),
                               st_context_reset_peak(run.context),
                               st_graph_create(run.context, &graph),
                               st_model_builtin(run.context, "mlp", nullptr, 1, &model),
                               st_model_parameter_count(run.model, &number),
                               st_data_rows(run.data, &number),
                               st_recipe_create(nullptr, &recipe),
                               st_recipe_json(run.recipe, &text),
                               st_trainer_create(run.model, run.recipe, nullptr, &trainer),
                               st_trainer_step(run.trainer, 0, nullptr, nullptr),
                               st_trainer_run(run.trainer, 1, nullptr, nullptr),
                               st_trainer_evaluate(run.trainer, run.data, &evaluation),
                               st_trainer_digest(run.trainer, &text),
                               st_trainer_cancel(run.trainer),
                               st_trainer_stop(run.trainer),
                               st_trainer_destroy(run.trainer),
                               st_predictor_create(run.model, nullptr, &predictor),
                               st_context_destroy(run.context),
                               st_live_handles(nullptr, &number)};
  int call = 0;
  for (const st_status answer : answers)
    if (++call; answer != ST_WRONG_STATE) return call;
  return std::string(st_last_error()).find("forked") == std::string::npos ? 100 : 0;
}

/// Forks; the child's answer, or -1 when it was ended by its alarm or crashed.
template <class Child>
int answer_of(const Child& child) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(kHang);
    _exit(child());
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Forking, EveryCallOfTheChildIsRefused) {
  SmallRun run(text_file("forking.txt", 2000));
  ASSERT_TRUE(works(st_trainer_step(run.trainer, 0, nullptr, nullptr)));
  EXPECT_EQ(answer_of([&] { return first_wrong_answer(run); }), 0) << "the number of the call; -1: it hung or crashed";
  EXPECT_TRUE(works(st_trainer_step(run.trainer, 0, nullptr, nullptr))) << "the parent goes on";
}

TEST(Forking, TheChildNeverHangsWhileOtherThreadsHoldTheLocks) {
  SmallRun run(text_file("forking.txt", 2000));
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&] {
      while (!done) {
        st_recipe* recipe = nullptr;
        EXPECT_TRUE(works(st_recipe_create(nullptr, &recipe)));
        EXPECT_TRUE(works(st_recipe_destroy(recipe)));
      }
    });
  threads.emplace_back([&] { EXPECT_TRUE(works(st_trainer_run(run.trainer, int64_t{1} << 40, nullptr, nullptr))); });
  for (int i = 0; i < 20; ++i) EXPECT_EQ(answer_of([&] { return first_wrong_answer(run); }), 0) << "fork " << i;
  EXPECT_TRUE(works(st_trainer_stop(run.trainer)));
  done = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(Forking, ACallWithoutHandlesStillAnswersInTheChild) {
  SmallRun run;
  const auto child = [] {
    const char* text = nullptr;
    if (st_version(&text) != ST_OK || st_require(ST_VERSION_MAJOR, ST_VERSION_MINOR) != ST_OK) return 1;
    if (st_recipe_keys(&text) != ST_OK || st_features(&text) != ST_OK) return 2;
    return st_context_destroy(nullptr) == ST_OK ? 0 : 3;
  };
  EXPECT_EQ(answer_of(child), 0);
}

}  // namespace
