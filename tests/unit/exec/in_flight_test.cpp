// Several micro-batches in flight have the bits of one at a time.
#include <gtest/gtest.h>

#include "models/gpt.h"
#include "order_in_flight.h"
#include "program_run.h"
#include "random_program.h"

namespace st {
namespace {

constexpr int64_t kRows = 3, kContext = 5, kMicroBatches = 4;

/// Every slot that lasts, and the reports, after two steps; each micro-batch has its own rows.
std::vector<std::vector<float>> after_two_steps(const Program& program, const StepOrder& order) {
  ProgramRun run(program, order);
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < kMicroBatches * kRows * kContext; ++i) tokens.push_back(i * i % 17);
  const auto prepare = [&](int64_t micro_batch) {
    const int32_t* const rows = tokens.data() + micro_batch * kRows * kContext;
    for (const char* input : {"tokens", "targets"}) run.bind(input, rows);
    auto* const counters = run.data<int64_t>("counters");
    counters[1] = micro_batch * kRows;
  };
  run.data<double>("rates")[0] = 1e-2;
  for (int step = 0; step < 2; ++step) {
    run.data<int64_t>("counters")[0] = step;
    run.run(prepare);
  }
  std::vector<std::vector<float>> all;
  for (const Slot& slot : run.program().slots)
    if (slot.type.dtype == DType::f32 && (slot.role == Role::parameter || slot.role == Role::gradient || slot.role == Role::optimizer))
      all.push_back(run.floats(slot.name));
  const double loss = *run.data<double>("loss_sum");
  all.push_back({static_cast<float>(loss), static_cast<float>(loss - static_cast<float>(loss))});
  return all;
}

TEST(InFlight, MicroBatchesHaveTheBitsOfOneAtATime) {
  const Program model = build_gpt({.layers = 2, .width = 12, .heads = 3, .context = kContext, .vocabulary = 17});
  const Program program = training_program(model, kRows, kMicroBatches, 1, 0.2);  // dropout: backward reads the counters again
  const auto in_order = after_two_steps(program, in_turn(program, kMicroBatches));
  for (const int32_t in_flight : {2, 3, 4})
    EXPECT_TRUE(after_two_steps(program, order_in_flight(program, kMicroBatches, in_flight)) == in_order) << in_flight << " in flight";
}

TEST(InFlight, ARunOfSomeMicroBatchesLeavesOutTheOthers) {
  const Program model = build_gpt({.layers = 1, .width = 12, .heads = 3, .context = kContext, .vocabulary = 17});
  const Program program = training_program(model, kRows, kMicroBatches);
  for (const int32_t in_flight : {1, 3}) {
    ProgramRun run(program, order_in_flight(program, kMicroBatches, in_flight));
    Executor& executor = run.executor();
    std::vector<int32_t> tokens(kRows * kContext, 3);
    for (const char* input : {"tokens", "targets"}) run.bind(input, tokens.data());
    Executor::Cursor cursor{.begin = 1, .end = 3};
    std::vector<int32_t> seen;
    executor.watch([&](const Instruction& at, const Call&) {
      if (seen.empty() || seen.back() != at.micro_batch) seen.push_back(at.micro_batch);
    });
    EXPECT_TRUE(executor.run_until(cursor, executor.begin_of_update(), Executor::kNoDeadline, {}));
    EXPECT_EQ(cursor.at, executor.begin_of_update());
    EXPECT_EQ(seen, in_flight == 1 ? (std::vector<int32_t>{1, 2}) : (std::vector<int32_t>{1, 2, 1, 2}));
  }
}

}  // namespace
}  // namespace st
