// The host's allocator: every buffer comes from it and goes back to it, and one that fails at any of its calls, as the C++ runtime's may,
// costs that call and nothing else.
#include "ledger.h"
#include "process_news.h"
#include "small_run.h"

namespace {

using namespace st::test;

int64_t allocated(st_context* context) {
  auto stats = filled(st_memory_stats_init);
  EXPECT_TRUE(works(st_context_memory(context, &stats)));
  return stats.allocated_bytes;
}

int64_t live_handles() {
  int64_t count = -1;
  EXPECT_TRUE(works(st_live_handles(nullptr, &count)));
  return count;
}

/// All that a host does with a model, up to the first call that fails.
class Life {
 public:
  Life(const st_context_options* options, const std::string& text) : options_(options), text_(text) {}
  st_status create(const char* model_json = R"({"layers": 1, "width": 16, "heads": 2, "context": 8})") {
    if (const st_status status = st_context_create(options_, context.out()); status != ST_OK) return status;
    if (const st_status status = st_model_builtin(context, "gpt", model_json, 1, model.out()); status != ST_OK) return status;
    if (const st_status status = st_recipe_create(R"({"batch": 3, "warmup": 0})", recipe.out()); status != ST_OK) return status;
    if (const st_status status = st_data_files(context, text_.c_str(), R"({"context": 8})", data.out()); status != ST_OK) return status;
    return st_trainer_create(model, recipe, data, trainer.out());
  }
  st_status step() { return st_trainer_step(trainer, 0, nullptr, nullptr); }
  st_status evaluate() {
    auto evaluation = filled(st_evaluation_init);
    return st_trainer_evaluate(trainer, data, &evaluation);
  }
  st_status work() {
    for (int i = 0; i < 2; ++i)
      if (const st_status status = step(); status != ST_OK) return status;
    return evaluate();
  }
  HeldContext context;
  HeldModel model;
  HeldRecipe recipe;
  HeldData data;
  HeldTrainer trainer;

 private:
  const st_context_options* options_;
  const std::string& text_;
};

TEST(Allocator, EveryBufferIsTheHostsAndGoesBack) {
  const std::string text = text_file("allocator.txt", 2000);
  Ledger ledger;
  const auto options = ledger.options();
  {
    Life life(&options, text);
    const int64_t large_before = large_news();
    EXPECT_TRUE(works(life.create(R"({"layers": 1, "width": 128, "heads": 4, "context": 8})")));
    EXPECT_GT(ledger.bytes(), int64_t{1} << 20);
    EXPECT_EQ(allocated(life.context), ledger.bytes());
    EXPECT_TRUE(works(life.work()));
    EXPECT_EQ(allocated(life.context), ledger.bytes());
    const int64_t calls = ledger.calls();
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(works(life.step()));
    EXPECT_EQ(ledger.calls(), calls) << "a step allocates nothing";
    const char* hex = nullptr;
    EXPECT_TRUE(works(st_trainer_digest(life.trainer, &hex)));
    EXPECT_EQ(large_news(), large_before) << "of 64 KiB and more, past the host's allocator";
  }
  EXPECT_EQ(ledger.bytes(), 0);
}

TEST(Allocator, TheHostsMemoryAndTheSystemsMakeTheSameBits) {
  const std::string text = text_file("allocator.txt", 2000);
  Ledger ledger;
  const auto options = ledger.options();
  Life hosts(&options, text), systems(nullptr, text);
  ASSERT_TRUE(works(hosts.create()));
  ASSERT_TRUE(works(systems.create()));
  ASSERT_TRUE(works(hosts.work()));
  ASSERT_TRUE(works(systems.work()));
  const char *a = nullptr, *b = nullptr;
  ASSERT_TRUE(works(st_trainer_digest(hosts.trainer, &a)));
  ASSERT_TRUE(works(st_trainer_digest(systems.trainer, &b)));
  EXPECT_STREQ(a, b);
}

TEST(Allocator, IsGivenWholeOrNotAtAll) {
  Ledger ledger;
  HeldContext context;
  auto options = ledger.options();
  options.free = nullptr;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_context_create(&options, context.out()), {"alloc", "free", "both or neither"}));
  options = ledger.options();
  options.alloc = nullptr;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_context_create(&options, context.out()), {"alloc", "free", "both or neither"}));
}

TEST(Allocator, AnAnswerThatIsNotAlignedIsGivenBackAndRefused) {
  Ledger ledger;
  ledger.skew = 16;
  const auto options = ledger.options();
  HeldContext context;
  HeldModel model;
  ASSERT_TRUE(works(st_context_create(&options, context.out())));
  EXPECT_TRUE(fails(ST_CALLBACK, st_model_builtin(context, "mlp", nullptr, 1, model.out()), {"alloc", "16 bytes past", "64"}));
  EXPECT_EQ(ledger.bytes(), 0);
}

TEST(Allocator, FailingAtAnyCallOfCreationLeavesNothing) {
  const std::string text = text_file("allocator.txt", 2000);
  const int64_t handles = live_handles();
  Ledger ledger;
  const auto options = ledger.options();
  int64_t failures = 0;
  for (;; ++failures) {
    Life life(&options, text);
    ledger.fail_at(failures);
    const st_status status = life.create();
    if (ledger.calls() <= failures) {
      EXPECT_TRUE(works(status));
      break;
    }
    ASSERT_TRUE(fails(ST_OUT_OF_MEMORY, status, {"alloc", "NULL", "bytes"})) << "call " << failures;
    ledger.fail_at(-1);
    Life next(&options, text);
    ASSERT_TRUE(works(next.create())) << "the next try";
  }
  EXPECT_GE(failures, 5) << "parameters, gradients, moments, activations, batches";
  EXPECT_EQ(ledger.bytes(), 0);
  EXPECT_EQ(live_handles(), handles);
}

TEST(Allocator, FailingAtAnyCallOfAnEvaluationLeavesTheTrainerWhole) {
  const std::string text = text_file("allocator.txt", 2000);
  Ledger ledger;
  const auto options = ledger.options();
  int64_t failures = 0;
  for (;; ++failures) {
    Life life(&options, text);
    ASSERT_TRUE(works(life.create()));
    ASSERT_TRUE(works(life.step()));
    const int64_t before = ledger.bytes();
    ledger.fail_at(failures);
    const st_status status = life.evaluate();
    const bool failed = ledger.calls() > failures;
    ledger.fail_at(-1);
    if (!failed) {
      EXPECT_TRUE(works(status));
      break;
    }
    ASSERT_TRUE(fails(ST_OUT_OF_MEMORY, status, {"alloc", "NULL"})) << "call " << failures;
    EXPECT_GE(ledger.bytes(), before);
    ASSERT_TRUE(works(life.evaluate())) << "the next try";
    ASSERT_TRUE(works(life.step()));
  }
  EXPECT_GE(failures, 2);
  EXPECT_EQ(ledger.bytes(), 0);
}

TEST(Allocator, TheRuntimesNewFailingAtAnyCallOfAStepLosesNothing) {
  const std::string text = text_file("allocator.txt", 600);
  Ledger ledger;
  const auto options = ledger.options();
  Life life(&options, text), undisturbed(&options, text);
  ASSERT_TRUE(works(life.create()));
  ASSERT_TRUE(works(undisturbed.create()));
  int64_t steps = 0;
  for (int64_t n = 0; n < 20; ++n) {
    fail_new(n, n % 2 == 0 ? Failing::once : Failing::for_good);
    const st_status step = life.step();
    fail_no_new();
    ASSERT_TRUE(step == ST_OK || step == ST_OUT_OF_MEMORY) << st_last_error();
    steps += step == ST_OK;
  }
  ASSERT_GT(steps, 0);
  for (int64_t i = 0; i < steps; ++i) ASSERT_TRUE(works(undisturbed.step()));
  const char *a = nullptr, *b = nullptr;
  ASSERT_TRUE(works(st_trainer_digest(life.trainer, &a)));
  ASSERT_TRUE(works(st_trainer_digest(undisturbed.trainer, &b)));
  EXPECT_STREQ(a, b);
}

}  // namespace
