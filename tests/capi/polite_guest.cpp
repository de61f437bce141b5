// The library leaves the process's state as it was before a call: floating-point state, signal handlers, standard output, environment and
// locale.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <clocale>
#include <csignal>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "all_kinds.h"
#include "guest_life.h"
#include "sanitized.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

extern char** environ;

namespace {

using namespace st::test;

/// Each lives a life and looks at something that no sanitizer does. A sanitizer sees the same calls in GuestLife, once.
class PoliteGuest : public testing::Test {
 protected:
  void SetUp() override {
    if (st::kSanitized) GTEST_SKIP() << "the calls of GuestLife.ALifeMakesEveryCallThatIsExported";
  }
};

#if defined(__x86_64__)

struct FloatState {
  uint32_t sse = 0;
  uint16_t x87 = 0;
  bool operator==(const FloatState&) const = default;
};

FloatState float_state() {
  FloatState now;
  now.sse = _mm_getcsr();
  __asm__ volatile("fnstcw %0" : "=m"(now.x87));
  return now;
}

void set_float_state(const FloatState& state) {
  _mm_setcsr(state.sse);
  __asm__ volatile("fldcw %0" : : "m"(state.x87));
}

constexpr uint32_t kDefault = 0x1F80;  // the initial state of a library thread
constexpr uint32_t kSticky = 0x3F;     // flags that arithmetic has set so far, in this test too

// Rounding towards +inf, denormals kept, and traps for division by zero, overflow and invalid operations: none of it may affect the
// library's arithmetic (it would die of SIGFPE) or be changed by it.
constexpr FloatState kUnusual = {0x1F80 | 0x4000, 0x0A7F}, kTrapping = {0x1F80 & ~0x0680U, 0x037F};

constexpr FloatState kFlushing = {0x1F80 | 0x2000 | 0x8000, 0x067F};  // towards -inf, denormal results flushed

/// Makes all calls in the floating-point state `hosts`, and checks it after each call and inside each callback.
class StrangeLife {
 public:
  explicit StrangeLife(const FloatState& hosts) : hosts_(hosts) {
    set_float_state(hosts_);
    live_a_life({[this](const char* call) { after(call); }, [this](const char* callback) { inside(callback); }});
    set_float_state(usual_);
  }
  int64_t calls() const { return calls_; }
  /// How often each callback ran on the calling thread, and on another one.
  const std::map<std::string, int64_t>& here() const { return here_; }
  const std::map<std::string, int64_t>& elsewhere() const { return elsewhere_; }

 private:
  void after(const char* call) {
    ++calls_;
    expect(hosts_, call);
  }
  void inside(const char* callback) {
    const bool is_here = std::this_thread::get_id() == thread_;
    expect(is_here ? hosts_ : FloatState{kDefault, float_state().x87}, callback);
    const std::lock_guard lock(mutex_);
    ++(is_here ? here_ : elsewhere_)[callback];
  }
  void expect(const FloatState& wanted, const char* where) const {
    const FloatState now = float_state();
    set_float_state(usual_);
    EXPECT_EQ(now.sse & ~kSticky, wanted.sse) << where;
    EXPECT_EQ(now.x87, wanted.x87) << where;
    set_float_state(now);
  }

  const FloatState hosts_, usual_ = float_state();
  const std::thread::id thread_ = std::this_thread::get_id();
  std::mutex mutex_;
  int64_t calls_ = 0;
  std::map<std::string, int64_t> here_, elsewhere_;
};

TEST_F(PoliteGuest, TheFloatingPointStateIsTheHostsAfterEachCallAndInEachCallback) {
  for (const FloatState& hosts : {kUnusual, kFlushing, kTrapping}) {
    const StrangeLife life(hosts);
    EXPECT_GT(life.calls(), 100);
    for (const char* callback :
         {"log", "parallel", "alloc", "free", "release", "deleter", "shape", "forward", "backward", "on_step", "on_token", "write", "read"})
      EXPECT_TRUE(life.here().contains(callback)) << callback << " was never called on the caller's thread";
    EXPECT_TRUE(life.elsewhere().contains("fill")) << "rows are prefetched on a thread of the library";
  }
}

TEST(GuestLife, TheHostsRoundingReachesNoNumberOfARecipe) {
  const FloatState usual = float_state();
  HeldRecipe upward;
  const auto nearest = hold<HeldRecipe>(st_recipe_create, R"({"lr": 0.1})");
  set_float_state(kUnusual);
  const st_status status = st_recipe_create(R"({"lr": 0.1})", upward.out());
  set_float_state(usual);
  ASSERT_TRUE(works(status));
  const char *a = nullptr, *b = nullptr;
  ASSERT_TRUE(works(st_recipe_json(nearest, &a)));
  ASSERT_TRUE(works(st_recipe_json(upward, &b)));
  EXPECT_STREQ(a, b);
}

#endif

TEST_F(PoliteGuest, SignalHandlersAndMaskAreUntouched) {
  const auto handlers = [] {
    std::vector<std::pair<void (*)(int), int>> all;
    for (int number = 1; number < NSIG; ++number) {
      struct sigaction now {};
      if (sigaction(number, nullptr, &now) == 0) all.emplace_back(now.sa_handler, now.sa_flags);
    }
    sigset_t mask;
    sigemptyset(&mask);
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    for (int number = 1; number < NSIG; ++number) all.emplace_back(nullptr, sigismember(&mask, number));
    return all;
  };
  const auto before = handlers();
  live_a_life({[&](const char* call) { EXPECT_EQ(handlers(), before) << call; }, {}});
}

/// Redirects standard output and standard error to a file.
class Captured {
 public:
  Captured() : path_(file_of("captured.txt", "")), out_(dup(1)), error_(dup(2)) {
    std::fflush(nullptr);
    const int file = open(path_.c_str(), O_WRONLY | O_TRUNC);
    dup2(file, 1);
    dup2(file, 2);
    close(file);
  }
  ~Captured() {
    if (out_ >= 0) static_cast<void>(size());
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  /// Ends the redirection; returns the number of bytes written.
  int64_t size() {
    std::fflush(nullptr);
    const auto bytes = static_cast<int64_t>(lseek(1, 0, SEEK_END));
    dup2(out_, 1);
    dup2(error_, 2);
    close(std::exchange(out_, -1));
    close(std::exchange(error_, -1));
    return bytes;
  }

 private:
  std::string path_;
  int out_, error_;
};

TEST_F(PoliteGuest, NothingIsEverPrinted) {
  Captured captured;
  std::vector<std::string> seen;
  live_a_life({[&](const char* call) { seen.emplace_back(call); }, {}});
  EXPECT_EQ(captured.size(), 0);
  EXPECT_GT(seen.size(), 30U);
  Captured check;
  ASSERT_EQ(write(1, "seen", 4), 4);
  EXPECT_EQ(check.size(), 4) << "the capture itself";
}

TEST_F(PoliteGuest, EnvironmentLocaleAndFolderAreUntouched) {
  { const AllKinds sets_a_launchers_variables; }
  const auto surroundings = [] {
    std::vector<std::string> all;
    for (char** variable = environ; *variable != nullptr; ++variable) all.emplace_back(*variable);
    all.emplace_back(std::setlocale(LC_ALL, nullptr));
    all.push_back(std::locale().name());
    std::array<char, 4096> folder{};
    all.emplace_back(getcwd(folder.data(), folder.size()));
    return all;
  };
  const auto before = surroundings();
  live_a_life({[&](const char* call) { EXPECT_EQ(surroundings(), before) << call; }, {}});
}

// The tests above claim "every call": a new function must be added to guest_life.cpp.
TEST(GuestLife, ALifeMakesEveryCallThatIsExported) {
  std::set<std::string> made;
  live_a_life({[&](const std::string& call) { made.insert(call.substr(0, call.find_first_of("( "))); }, {}});
  std::ifstream symbols(ST_SYMBOLS);
  int64_t count = 0;
  for (std::string name; std::getline(symbols, name); ++count) {
    const bool returns_no_status = name == "st_last_error", fills_a_struct = name.ends_with("_init");
    EXPECT_TRUE(made.contains(name) || returns_no_status || fills_a_struct) << name;
  }
  EXPECT_GT(count, 90);
}

}  // namespace
