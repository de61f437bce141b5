// A polite guest: what the host had before a call it has after it. Its floating-point state, its signal handlers, its standard output, its
// environment and its locale.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <clocale>
#include <csignal>
#include <cstring>
#include <functional>
#include <thread>

#include "small_run.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

extern char** environ;

namespace {

using namespace st::test;

/// Every kind of call there is, each by itself. `after` is called with the call's name when it has returned.
void live_a_life(const std::function<void(const char* call)>& after) {
  const std::string text = text_file("polite.txt", 2000);
  const std::string weights = file_of("polite.safetensors", ""), report = file_of("polite.html", "");
  const char* answer = nullptr;
  int64_t number = 0;
  auto stats = filled(st_memory_stats_init);
  auto parameter = filled(st_parameter_info_init);
  auto evaluation = filled(st_evaluation_init);
  auto generate = filled(st_generate_options_init);
  generate.tokens = 3;
  auto options = filled(st_context_options_init);
  options.threads = 2;
  HeldContext context;
  HeldGraph graph;
  HeldModel model, own;
  HeldRecipe recipe;
  HeldData data, train, validation;
  HeldTrainer trainer;
  HeldPredictor predictor;
  TokenBatch batch(3, 5);
  const int32_t prompt = 5;
  const auto call = [&](const char* name, st_status status) {
    after(name);
    EXPECT_TRUE(works(status)) << name;
  };
#define CALL(expression) call(#expression, expression)
  CALL(st_version(&answer));
  CALL(st_features(&answer));
  CALL(st_recipe_keys(&answer));
  CALL(st_context_create(&options, context.out()));
  CALL(st_graph_create(context, graph.out()));
  sine_graph(graph);
  CALL(st_graph_text(graph, &answer));
  CALL(st_model_create(graph, 1, own.out()));
  CALL(st_model_builtin(context, "gpt", kSmallGpt, 1, model.out()));
  CALL(st_model_parameter_count(model, &number));
  CALL(st_model_parameter(model, 0, &parameter));
  CALL(st_model_write_file(model, weights.c_str()));
  CALL(st_model_read_file(model, weights.c_str()));
  CALL(st_data_files(context, text.c_str(), R"({"context": 8})", data.out()));
  CALL(st_data_split(data, 0.2, 0, train.out(), validation.out()));
  double loss = 0;
  CALL(st_data_bigram_loss(train, validation, &loss));
  CALL(st_recipe_create(R"({"batch": 3, "warmup": 3, "lr": 0.001})", recipe.out()));
  CALL(st_recipe_set(recipe, "lr", "0.0003"));
  CALL(st_recipe_json(recipe, &answer));
  CALL(st_trainer_create(model, recipe, train, trainer.out()));
  CALL(st_trainer_step(trainer, 0, nullptr, nullptr));
  CALL(st_trainer_step(trainer, 2, batch.views(), nullptr));
  CALL(st_trainer_run(trainer, 4, nullptr, nullptr));
  CALL(st_trainer_evaluate(trainer, validation, &evaluation));
  CALL(st_trainer_digest(trainer, &answer));
  CALL(st_trainer_plan(trainer, &answer));
  CALL(st_trainer_explain(trainer, &answer));
  CALL(st_trainer_write_report(trainer, report.c_str(), nullptr));
  CALL(st_predictor_create(model, nullptr, predictor.out()));
  CALL(st_predictor_generate(
      predictor, 1, &prompt, &generate, [](void*, int32_t) { return st_status{ST_OK}; }, nullptr));
  CALL(st_context_memory(context, &stats));
  CALL(st_context_trim(context));
  CALL(st_context_cancel(context));
  // And some that fail.
  EXPECT_NE(st_require(99, 0), ST_OK);
  after("st_require of another version");
  EXPECT_NE(st_recipe_set(recipe, "lr", "many"), ST_OK);
  after("st_recipe_set of no number");
  EXPECT_NE(st_trainer_step(trainer, 1, batch.views(), nullptr), ST_OK);
  after("st_trainer_step with too few views");
  CALL(st_predictor_destroy(*predictor.out()));
  *predictor.out() = nullptr;
  CALL(st_trainer_destroy(*trainer.out()));
  *trainer.out() = nullptr;
#undef CALL
}

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

constexpr uint32_t kSticky = 0x3F;  // what arithmetic, this test's too, has met so far

// Rounding towards +inf, denormals kept, and division by zero, overflow and invalid operations trap: none of it may reach the library's own
// arithmetic (it would die of SIGFPE) or be changed by it.
constexpr FloatState kUnusual = {0x1F80 | 0x4000, 0x0A7F}, kTrapping = {0x1F80 & ~0x0680U, 0x037F};

TEST(PoliteGuest, TheFloatingPointStateOfTheCallerIsAsItWas) {
  for (const FloatState& hosts : {kUnusual, kTrapping}) {
    const FloatState usual = float_state();
    int calls = 0;
    set_float_state(hosts);
    live_a_life([&](const char* call) {
      const FloatState after = float_state();
      set_float_state(usual);
      EXPECT_EQ(after.sse & ~kSticky, hosts.sse) << call;
      EXPECT_EQ(after.x87, hosts.x87) << call;
      ++calls;
      set_float_state(hosts);
    });
    set_float_state(usual);
    EXPECT_GT(calls, 30);
  }
}

TEST(PoliteGuest, ACallbackRunsInTheHostsOwnFloatingPointMode) {
  SmallRun run(text_file("polite.txt", 2000));
  const FloatState usual = float_state();
  FloatState inside;
  const auto look = [](void* user, const st_step_report*) {
    *static_cast<FloatState*>(user) = float_state();
    return st_status{ST_OK};
  };
  set_float_state(kUnusual);
  const st_status status = st_trainer_run(run.trainer, 1, look, &inside);
  set_float_state(usual);
  EXPECT_TRUE(works(status));
  EXPECT_EQ(inside.sse & ~kSticky, kUnusual.sse);
  EXPECT_EQ(inside.x87, kUnusual.x87);
}

TEST(PoliteGuest, TheHostsRoundingReachesNoNumberOfARecipe) {
  const FloatState usual = float_state();
  HeldRecipe nearest, upward;
  ASSERT_TRUE(works(st_recipe_create(R"({"lr": 0.1})", nearest.out())));
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

TEST(PoliteGuest, SignalHandlersAndMaskAreUntouched) {
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
  live_a_life([&](const char* call) { EXPECT_EQ(handlers(), before) << call; });
}

/// What is written to standard output and standard error during its life goes to a file.
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
  /// Ends it; bytes that were written.
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

TEST(PoliteGuest, NothingIsEverPrinted) {
  Captured captured;
  std::vector<std::string> seen;
  live_a_life([&](const char* call) { seen.emplace_back(call); });
  EXPECT_EQ(captured.size(), 0);
  EXPECT_GT(seen.size(), 30U);
  Captured check;
  ASSERT_EQ(write(1, "seen", 4), 4);
  EXPECT_EQ(check.size(), 4) << "the capture itself";
}

TEST(PoliteGuest, EnvironmentLocaleAndFolderAreUntouched) {
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
  live_a_life([&](const char* call) { EXPECT_EQ(surroundings(), before) << call; });
}

}  // namespace
