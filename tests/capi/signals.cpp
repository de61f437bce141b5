// Cancel and stop from where nothing else may be called: a signal handler, and threads that do not know whether the handle still exists.
#include <sys/time.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <thread>

#include "sanitized.h"
#include "small_run.h"

namespace {

using namespace st::test;

// The handler's target and its results.
std::atomic<st_trainer*> target{nullptr};
std::atomic<st_context*> target_context{nullptr};
std::atomic<st_trainer*> stale{nullptr};
std::atomic<int64_t> signals{0}, refused{0}, accepted_stale{0};

void on_alarm(int) {
  const int saved = errno;
  errno = 77;
  ++signals;
  if (st_trainer_cancel(target) != ST_OK || st_context_cancel(target_context) != ST_OK) ++refused;
  if (st_trainer_cancel(stale) != ST_INVALID_HANDLE || st_trainer_stop(stale) != ST_INVALID_HANDLE) ++accepted_stale;
  if (errno != 77) ++refused;
  errno = saved;
}

/// Sends this process a SIGALRM every `microseconds` for its lifetime.
class Alarms {
 public:
  explicit Alarms(int microseconds) {
    struct sigaction action {};
    action.sa_handler = on_alarm;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, &before_);
    const itimerval every = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &every, nullptr);
  }
  ~Alarms() {
    const itimerval never{};
    setitimer(ITIMER_REAL, &never, nullptr);
    sigaction(SIGALRM, &before_, nullptr);
  }
  Alarms(const Alarms&) = delete;
  Alarms& operator=(const Alarms&) = delete;

 private:
  struct sigaction before_ {};
};

TEST(Signals, ACancelFromAHandlerEndsStepsAndLosesNone) {
  const std::string text = text_file("signals.txt", 3000);
  SmallRun run(text), undisturbed(text);
  {
    SmallRun gone(text);
    stale = gone.trainer;
  }
  target = run.trainer;
  target_context = run.context;
  signals = refused = accepted_stale = 0;
  int64_t whole = 0, cancelled = 0;
  {
    const Alarms alarms(300);
    while (signals < 3000) {
      const st_status status = st_trainer_step(run.trainer, 0, nullptr, nullptr);
      whole += status == ST_OK;
      cancelled += status == ST_CANCELLED;
      ASSERT_TRUE(status == ST_OK || status == ST_CANCELLED) << st_last_error();
      st_recipe* recipe = nullptr;  // the handler often interrupts while the tables' locks are held
      ASSERT_TRUE(works(st_recipe_create(nullptr, &recipe)));
      ASSERT_TRUE(works(st_recipe_destroy(recipe)));
    }
  }
  EXPECT_EQ(refused, 0);
  EXPECT_EQ(accepted_stale, 0);
  EXPECT_GT(cancelled, 0);
  static_cast<void>(st_trainer_step(run.trainer, 0, nullptr, nullptr) == ST_OK ? ++whole : 0);  // consumes a cancel that came in between
  while (undisturbed.digest() != run.digest() && whole-- > 0) ASSERT_TRUE(works(st_trainer_step(undisturbed.trainer, 0, nullptr, nullptr)));
  EXPECT_EQ(undisturbed.digest(), run.digest()) << "the cancelled steps changed the state";
}

TEST(Signals, AStopFromAHandlerEndsARun) {
  static std::atomic<st_trainer*> running;
  SmallRun run(text_file("signals.txt", 3000));
  running = run.trainer;
  const auto before = std::signal(SIGUSR1, [](int) { st_trainer_stop(running); });
  const auto raise_at_3 = [](void*, const st_step_report* report) {
    if (report->step == 3) std::raise(SIGUSR1);
    return st_status{ST_OK};
  };
  EXPECT_TRUE(works(st_trainer_run(run.trainer, 1 << 30, raise_at_3, nullptr)));
  std::signal(SIGUSR1, before);
}

TEST(Signals, ACancelThatFailsLeavesTheThreadsLastErrorAlone) {
  EXPECT_TRUE(fails(ST_UNSUPPORTED, st_require(99, 0), {"99"}));
  EXPECT_EQ(st_context_cancel(nullptr), ST_INVALID_HANDLE);
  EXPECT_EQ(st_trainer_cancel(nullptr), ST_INVALID_HANDLE);
  EXPECT_EQ(st_trainer_stop(nullptr), ST_INVALID_HANDLE);
  EXPECT_NE(std::string(st_last_error()).find("99"), std::string::npos);
}

TEST(Signals, CancelsOfHandlesThatComeAndGoHitOrMiss) {
  const auto context = hold<HeldContext>(st_context_create, nullptr);
  const auto model = hold<HeldModel>(st_model_builtin, context, "mlp", R"({"hidden": [2]})", 1);
  const auto recipe = hold<HeldRecipe>(st_recipe_create, R"({"threads": 1})");
  std::atomic<st_trainer*> handle{nullptr};
  std::atomic<bool> done{false};
  std::atomic<int64_t> hits{0}, misses{0}, others{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      while (!done) {
        const st_status status = st_trainer_cancel(handle);
        ++(status == ST_OK ? hits : status == ST_INVALID_HANDLE ? misses : others);
      }
    });
  const int least = st::kSanitized ? 50 : 300;
  for (int i = 0; i < least || (hits == 0 && i < 100000); ++i) {
    st_trainer* trainer = nullptr;
    ASSERT_TRUE(works(st_trainer_create(model, recipe, nullptr, &trainer)));
    handle = trainer;
    std::this_thread::yield();
    ASSERT_TRUE(works(st_trainer_destroy(trainer)));
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(hits, 0);
  EXPECT_EQ(others, 0);
}

TEST(Signals, CancelsFindHandlesInATableThatGrows) {
  std::vector<HeldContext> contexts(200);  // more than the table's first chunk
  std::atomic<st_context*> newest{nullptr};
  std::atomic<bool> done{false};
  std::atomic<int64_t> others{0};
  std::thread canceller([&] {
    while (!done) {
      st_context* context = newest;
      others += context != nullptr && st_context_cancel(context) != ST_OK;
    }
  });
  for (HeldContext& context : contexts) {
    ASSERT_TRUE(works(st_context_create(nullptr, context.out())));
    newest = context;
  }
  done = true;
  canceller.join();
  EXPECT_EQ(others, 0);
  for (HeldContext& context : contexts) EXPECT_EQ(st_context_cancel(context), ST_OK);
}

}  // namespace
