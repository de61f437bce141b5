// The host's allocator: all memory of a context comes from it and returns to it. Failures of its calls: creation_memory.cpp and
// step_memory.cpp.
#include "ledger.h"
#include "small_run.h"

namespace {

using namespace st::test;

int64_t allocated(st_context* context) { return memory_of(context).allocated_bytes; }

/// In addition to the buffers there are only names, graphs and plans.
void expect_buffers_and_little_more(st_context* context, Ledger& ledger) {
  EXPECT_GT(ledger.bytes(), allocated(context));
  EXPECT_LT(ledger.bytes(), allocated(context) + (int64_t{1} << 20));
}

/// Two steps and an evaluation.
void work(st_trainer* trainer, st_data* data) {
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(works(st_trainer_step(trainer, 0, nullptr, nullptr)));
  filled(st_evaluation_init, st_trainer_evaluate, trainer, data);
}

TEST(Allocator, EveryBufferIsTheHostsAndAllGoesBack) {
  const std::string text = text_file("allocator.txt", 2000);
  Ledger ledger;
  const auto options = ledger.options();
  {
    const auto context = hold<HeldContext>(st_context_create, &options);
    const char* json = R"({"layers": 1, "width": 128, "heads": 4, "context": 8})";
    const auto model = hold<HeldModel>(st_model_builtin, context, "gpt", json, 1);
    const auto recipe = hold<HeldRecipe>(st_recipe_create, R"({"batch": 3, "warmup": 0})");
    const auto data = hold<HeldData>(st_data_files, context, text.c_str(), R"({"context": 8})");
    const auto trainer = hold<HeldTrainer>(st_trainer_create, model, recipe, data);
    EXPECT_GT(ledger.bytes(), int64_t{1} << 20);
    expect_buffers_and_little_more(context, ledger);
    work(trainer, data);
    expect_buffers_and_little_more(context, ledger);
    const int64_t calls = ledger.calls();
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(works(st_trainer_step(trainer, 0, nullptr, nullptr)));
    EXPECT_EQ(ledger.calls(), calls) << "a step allocates nothing";
    EXPECT_NE(text_of(st_trainer_digest, trainer), "");
  }
  EXPECT_EQ(ledger.bytes(), 0);
}

TEST(Allocator, TheHostsMemoryAndTheSystemsMakeTheSameBits) {
  const std::string text = text_file("allocator.txt", 2000);
  Ledger ledger;
  const auto options = ledger.options();
  const SmallRun hosts(text, &options), systems(text);
  for (const SmallRun* run : {&hosts, &systems}) work(run->trainer, run->data);
  EXPECT_EQ(hosts.digest(), systems.digest());
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
  ledger.skewed = 4096;  // from the size of buffers on
  EXPECT_TRUE(fails(ST_CALLBACK, st_model_builtin(context, "mlp", nullptr, 1, model.out()), {"alloc", "16 bytes past", "64"}));
  context.reset();
  EXPECT_EQ(ledger.bytes(), 0);
}

}  // namespace
