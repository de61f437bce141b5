#include "exec/executor.h"

#include <gtest/gtest.h>

#include "models/gpt.h"
#include "program_run.h"
#include "random_program.h"
#include "thrown_error.h"

namespace st {
namespace {

Program gpt_step(int64_t batch, int64_t micro_batches) {
  return training_program(build_gpt({.layers = 2, .width = 12, .heads = 3, .context = 5, .vocabulary = 17}), batch, micro_batches);
}

std::vector<int32_t> tokens_for(int64_t batch) {
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < batch * 5; ++i) tokens.push_back(i * 7 % 17);
  return tokens;
}

TEST(Executor, AllocatesThePlannedBytesOfEachRoleExactly) {
  const auto backend = make_reference_backend();
  Storage storage(*backend);
  Workers workers(1);
  const Plan plan = plan_for_reference(gpt_step(3, 2), 2);
  const Executor executor(plan, storage, workers, nullptr);
  for (int32_t a = 0; a < kArenas; ++a)
    EXPECT_EQ(executor.allocated(static_cast<Arena>(a)), plan.memory.bytes[static_cast<size_t>(a)]) << name_of(static_cast<Arena>(a));
  EXPECT_EQ(backend->allocated_bytes(), plan.memory.total());
  EXPECT_GT(plan.memory.of(Arena::workspace), 0);
}

TEST(Executor, SecondOneOnTheSameStorageAddsOnlyWhatIsItsOwn) {
  const auto backend = make_reference_backend();
  Storage storage(*backend);
  Workers workers(1);
  const Plan plan = plan_for_reference(gpt_step(3, 1)), other = plan_for_reference(gpt_step(2, 1));
  const Executor first(plan, storage, workers, nullptr), second(other, storage, workers, nullptr);
  EXPECT_EQ(backend->allocated_bytes(), plan.memory.total() + other.memory.total() - storage.bytes());
}

TEST(Executor, StoragesWithTheSameParametersHaveMomentsOfTheirOwn) {
  const auto backend = make_reference_backend();
  Storage model(*backend);
  model.arena(Arena::parameters, 128);
  Storage one = model.with_same_parameters(), two = model.with_same_parameters();
  one.arena(Arena::optimizer, 64);
  two.arena(Arena::optimizer, 64);
  EXPECT_EQ(one.data(Arena::parameters), two.data(Arena::parameters));
  EXPECT_NE(one.data(Arena::optimizer), two.data(Arena::optimizer));
  EXPECT_EQ(model.bytes(), 128);
}

TEST(Executor, StorageRefusesAPlanOfAnotherSizeWithBoth) {
  const auto backend = make_reference_backend();
  Storage storage(*backend);
  storage.arena(Arena::gradients, 128);
  EXPECT_TRUE(
      is_error(error_of([&] { storage.arena(Arena::gradients, 192); }), Code::wrong_state, {"192 bytes of gradients, the model has 128"}));
}

TEST(Executor, CallsBackOnceAMicroBatchInOrder) {
  ProgramRun run(gpt_step(3, 4), 4);
  const auto tokens = tokens_for(3);
  std::vector<int64_t> calls;
  run.run([&](int64_t micro_batch) {
    calls.push_back(micro_batch);
    run.bind("tokens", tokens.data());
    run.bind("targets", tokens.data());
  });
  EXPECT_EQ(calls, (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(*run.data<double>("loss_count"), 4 * 15);
}

TEST(Executor, AnErrorNamesTheOpItsScopeAndThePlace) {
  ProgramRun run(gpt_step(3, 1));
  auto tokens = tokens_for(3);
  const auto targets = tokens;
  tokens[7] = 17;
  run.bind("tokens", tokens.data());
  run.bind("targets", targets.data());
  const Error error = error_of([&] { run.run(); });
  EXPECT_EQ(error.place.op, "embedding");
  EXPECT_EQ(error.message().substr(0, 11), "embedding: ") << error.message();  // the scope
  for (const char* word : {"17", "[1, 2]"}) EXPECT_NE(error.message().find(word), std::string::npos) << error.message();
}

TEST(Executor, CancelledBeforeTheUpdateLeavesParametersAndMoments) {
  const auto backend = make_reference_backend();
  Storage storage(*backend);
  Workers workers(1);
  CancelToken cancelled;
  Executor executor(plan_for_reference(gpt_step(3, 3), 3), storage, workers, &cancelled);
  const auto tokens = tokens_for(3);
  const auto& program = executor.plan().program;
  const auto state = [&] {
    std::vector<std::byte> bytes;
    for (const Arena arena : {Arena::parameters, Arena::optimizer})
      bytes.insert(bytes.end(), pointer_to(storage.data(arena)), pointer_to(storage.data(arena)) + executor.allocated(arena));
    return bytes;
  };
  const auto before = state();
  const auto bind = [&](int64_t micro_batch) {
    executor.bind(program.slot_named("tokens"), tokens.data());
    executor.bind(program.slot_named("targets"), tokens.data());
    if (micro_batch == 2) cancelled.cancel();
  };
  EXPECT_EQ(error_of([&] { executor.run(bind); }).code(), Code::cancelled);
  EXPECT_EQ(state(), before);
  EXPECT_FALSE(cancelled.is_set()) << "a cancel ends one run";
}

TEST(Executor, RunsAgainAfterAnErrorAsIfNothingHadHappened) {
  ProgramRun broken(gpt_step(3, 1)), whole(gpt_step(3, 1));
  const auto good = tokens_for(3);
  auto bad = good;
  bad[3] = -1;
  broken.bind("tokens", bad.data());
  broken.bind("targets", good.data());
  EXPECT_THROW(broken.run(), Error);
  for (ProgramRun* run : {&broken, &whole}) {
    run->bind("tokens", good.data());
    run->bind("targets", good.data());
    run->data<double>("rates")[0] = 1e-2;
    run->run();
  }
  EXPECT_EQ(broken.floats("block.0.attention.qkv.weight"), whole.floats("block.0.attention.qkv.weight"));
  EXPECT_EQ(*broken.data<double>("loss_sum"), *whole.data<double>("loss_sum"));
}

}  // namespace
}  // namespace st
