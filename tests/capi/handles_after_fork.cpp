// The child of a process with handles: every call on one is refused, none hangs, and the child exits like any other program.
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "handle_calls.h"

namespace {

using namespace st::test;

constexpr unsigned kHang = 60;  // seconds until an alarm ends a child that hangs, which fails the test

/// 0, or the position, from 1, of the first call that is not refused.
int first_that_is_not_refused(AllKinds& w) {
  int position = 0;
  for (const HandleCall& row : handle_calls()) {
    ++position;
    if (row.call(w, w.of(row.kind)) != ST_WRONG_STATE) return position;
    if (row.has_message() && std::string(st_last_error()).find("forked") == std::string::npos) return position;
  }
  return 0;
}

/// The exit status of a child that called exit(): its destructors run, and the library's. -1 if an alarm or a crash ended it.
template <class Child>
int answer_of(const Child& child, pid_t (*forked)() = fork) {
  std::fflush(nullptr);  // otherwise the child would print it again
  const pid_t pid = forked();
  if (pid == 0) {
    alarm(kHang);
    std::exit(child());
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string row_at(int position) {
  return position < 1 || position == 255 ? "" : handle_calls()[static_cast<size_t>(position - 1)].function;
}

TEST(HandlesAfterFork, EveryCallOnALiveOneIsRefused) {
  AllKinds w;
  const std::string before = w.state();
  const int answer = answer_of([&] { return first_that_is_not_refused(w); });
  EXPECT_EQ(answer, 0) << row_at(answer);
  EXPECT_EQ(w.state(), before) << "the parent continues";
}

// Calls that create or count handles are refused, too; calls that need none work.
TEST(Forking, ACallWithoutHandlesAnswersOnlyWhereItMakesNone) {
  AllKinds w;
  const auto child = [] {
    const char* text = nullptr;
    int64_t number = 0;
    st_context* context = nullptr;
    st_recipe* recipe = nullptr;
    if (st_context_create(nullptr, &context) != ST_WRONG_STATE || st_recipe_create(nullptr, &recipe) != ST_WRONG_STATE) return 1;
    if (std::string(st_last_error()).find("forked") == std::string::npos) return 2;
    if (st_live_handles(nullptr, &number) != ST_WRONG_STATE) return 3;
    if (st_version(&text) != ST_OK || st_require(ST_VERSION_MAJOR, ST_VERSION_MINOR) != ST_OK) return 4;
    if (st_recipe_keys(&text) != ST_OK || st_features(&text) != ST_OK) return 5;
    return st_context_destroy(nullptr) == ST_OK ? 0 : 6;
  };
  EXPECT_EQ(answer_of(child), 0);
}

TEST(HandlesAfterFork, AChildThatTheCLibraryDoesNotKnowOfIsRefusedToo) {
  AllKinds w;
  const int answer =
      answer_of([&] { return first_that_is_not_refused(w); }, [] { return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); });
  EXPECT_EQ(answer, 0) << row_at(answer);
}

TEST(HandlesAfterFork, AChildThatCallsNothingExits) {
  AllKinds w;
  EXPECT_EQ(answer_of([] { return 0; }), 0);
}

TEST(HandlesAfterFork, AChildExitsWhenTheParentsHandlesAreGone) {
  { const AllKinds gone; }
  EXPECT_EQ(answer_of([] { return 0; }), 0);
}

TEST(HandlesAfterFork, AChildOfThreadsThatHoldTheLocksExits) {
  AllKinds w;
  std::atomic<bool> done{false};
  std::thread comes_and_goes([&] {
    while (!done) {
      const auto recipe = hold<HeldRecipe>(st_recipe_create, nullptr);
    }
  });
  std::thread trains([&] { EXPECT_TRUE(works(st_trainer_run(w.run.trainer, int64_t{1} << 40, nullptr, nullptr))); });
  for (int i = 0; i < 20; ++i) {
    const int answer = answer_of([&] {
      st_recipe* recipe = nullptr;
      return st_recipe_create(nullptr, &recipe) == ST_WRONG_STATE ? first_that_is_not_refused(w) : 255;
    });
    EXPECT_EQ(answer, 0) << "fork " << i << ": " << row_at(answer);
  }
  EXPECT_TRUE(works(st_trainer_stop(w.run.trainer)));
  done = true;
  comes_and_goes.join();
  trains.join();
}

}  // namespace
