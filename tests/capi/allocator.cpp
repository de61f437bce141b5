// The host's allocator: all memory of a context comes from it and goes back to it, and one that fails at any of its calls costs that call
// and nothing else.
#include "ledger.h"
#include "small_run.h"

namespace {

using namespace st::test;

int64_t allocated(st_context* context) {
  auto stats = filled(st_memory_stats_init);
  EXPECT_TRUE(works(st_context_memory(context, &stats)));
  return stats.allocated_bytes;
}

/// Names, graphs and plans beside the buffers.
void expect_buffers_and_little_more(st_context* context, Ledger& ledger) {
  EXPECT_GT(ledger.bytes(), allocated(context));
  EXPECT_LT(ledger.bytes(), allocated(context) + (int64_t{1} << 20));
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

TEST(Allocator, EveryBufferIsTheHostsAndAllGoesBack) {
  const std::string text = text_file("allocator.txt", 2000);
  Ledger ledger;
  const auto options = ledger.options();
  {
    Life life(&options, text);
    EXPECT_TRUE(works(life.create(R"({"layers": 1, "width": 128, "heads": 4, "context": 8})")));
    EXPECT_GT(ledger.bytes(), int64_t{1} << 20);
    expect_buffers_and_little_more(life.context, ledger);
    EXPECT_TRUE(works(life.work()));
    expect_buffers_and_little_more(life.context, ledger);
    const int64_t calls = ledger.calls();
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(works(life.step()));
    EXPECT_EQ(ledger.calls(), calls) << "a step allocates nothing";
    const char* hex = nullptr;
    EXPECT_TRUE(works(st_trainer_digest(life.trainer, &hex)));
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
  const auto options = ledger.options();
  HeldContext context;
  HeldModel model;
  ledger.skew = 8;
  EXPECT_TRUE(fails(ST_CALLBACK, st_context_create(&options, context.out()), {"alloc", "8 bytes past", "16"}));
  ledger.skew = 0;
  ASSERT_TRUE(works(st_context_create(&options, context.out())));
  ledger.skew = 8;
  EXPECT_TRUE(fails(ST_CALLBACK, st_model_builtin(context, "mlp", nullptr, 1, model.out()), {"alloc", "8 bytes past", "16"}));
  ledger.skew = 16;
  ledger.skewed = 4096;  // of buffers
  EXPECT_TRUE(fails(ST_CALLBACK, st_model_builtin(context, "mlp", nullptr, 1, model.out()), {"alloc", "16 bytes past", "64"}));
  context.reset();
  EXPECT_EQ(ledger.bytes(), 0);
}

TEST(Allocator, FailingAtAnyCallOfCreationLeavesNothing) {
  const std::string text = text_file("allocator.txt", 2000);
  const int64_t handles = live_handles();
  Ledger ledger;
  const auto options = ledger.options();
  int64_t failures = 0;
  for (int64_t n = 0;; n = next_to_fail(n), ++failures) {
    Life life(&options, text);
    ledger.fail_at(n);
    const st_status status = life.create();
    if (!ledger.fail_none()) {
      EXPECT_TRUE(works(status));
      break;
    }
    if (status == ST_OK) continue;  // it did without
    ASSERT_TRUE(fails(ST_OUT_OF_MEMORY, status, {"alloc", "NULL", "bytes"})) << "call " << n;
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
  for (int64_t n = 0;; n = next_to_fail(n), ++failures) {
    Life life(&options, text);
    ASSERT_TRUE(works(life.create()));
    ASSERT_TRUE(works(life.step()));
    const int64_t before = ledger.bytes();
    ledger.fail_at(n);
    const st_status status = life.evaluate();
    if (!ledger.fail_none()) {
      EXPECT_TRUE(works(status));
      break;
    }
    ASSERT_TRUE(fails(ST_OUT_OF_MEMORY, status, {"alloc", "NULL"})) << "call " << n;
    EXPECT_GE(ledger.bytes(), before);
    ASSERT_TRUE(works(life.evaluate())) << "the next try";
    ASSERT_TRUE(works(life.step()));
  }
  EXPECT_GE(failures, 2);
  EXPECT_EQ(ledger.bytes(), 0);
}

}  // namespace
