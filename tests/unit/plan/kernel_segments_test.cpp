// Which kernels a device may record, and which of them are the same.
#include "plan/kernel_segments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "order_in_flight.h"
#include "passes/accumulate.h"
#include "passes/data_parallel.h"
#include "passes/overlap.h"
#include "plan/accesses.h"
#include "plan/input_copies.h"
#include "plan/operand_places.h"
#include "random_program.h"
#include "small_program.h"

namespace st {
namespace {

Plan planned(Program program, const StepOrder& order) {
  MemoryLayout memory = memory_plan(program, order, [](auto&&...) { return int64_t{64}; });
  return make_plan(std::move(program), std::move(memory), order);
}

Plan planned(Program program, int64_t micro_batches) {
  const StepOrder order = in_turn(program, micro_batches);
  return planned(std::move(program), order);
}

std::vector<int32_t> recordings_of(const Plan& plan) {
  std::vector<int32_t> recordings;
  for (const KernelSegment& segment : segments_of(plan)) recordings.push_back(segment.recording);
  return recordings;
}

const Node& node_at(const Plan& plan, size_t i) {
  const Instruction& at = plan.instructions[i];
  return plan.program.sections[static_cast<size_t>(at.section)].graph[at.node];
}

/// Every kernel is in one segment, and those of one recording access the same bytes, one after another.
void expect_repeatable(const Plan& plan) {
  std::vector<int> in_segments(plan.instructions.size());
  std::map<int32_t, KernelSegment> first;
  for (const KernelSegment& segment : segments_of(plan)) {
    const KernelSegment& like = first.emplace(segment.recording, segment).first->second;
    ASSERT_EQ(segment.end - segment.begin, like.end - like.begin);
    for (size_t i = segment.begin; i < segment.end; ++i) {
      ++in_segments[i];
      const Instruction &at = plan.instructions[i], &other = plan.instructions[like.begin + (i - segment.begin)];
      EXPECT_EQ(at.micro_batch, plan.instructions[segment.begin].micro_batch);
      EXPECT_EQ(&node_at(plan, i), &node_at(plan, like.begin + (i - segment.begin)));
      EXPECT_EQ(accesses_of(plan, at), accesses_of(plan, other)) << "instruction " << i;
    }
  }
  for (size_t i = 0; i < plan.instructions.size(); ++i)
    EXPECT_EQ(in_segments[i], plan.instructions[i].kind == Instruction::Kind::kernel ? 1 : 0) << i;
}

TEST(Segments, AreThoseOfTheFirstMicroBatchTheMiddleOnesAndTheUpdate) {
  const Plan plan = planned(training_program(small_gpt(), 2, 4), 4);
  expect_repeatable(plan);
  EXPECT_EQ(recordings_of(plan), (std::vector<int32_t>{0, 1, 2, 3, 2, 3, 2, 3, 4}));  // forward and backward in turn
  EXPECT_EQ(print_segments(plan).substr(0, 14), "segments: 9 of");
}

TEST(Segments, WithBuffersOfTheStashInTurnRepeatWhereTheirBuffersDo) {
  for (const int32_t in_flight : {2, 3}) {
    Program program = training_program(small_gpt(), 2, 7);
    const StepOrder order = order_in_flight(program, 7, in_flight);
    const Plan plan = planned(std::move(program), order);
    expect_repeatable(plan);
    const OperandPlaces places(plan);
    std::map<std::pair<int32_t, int32_t>, std::set<int32_t>> seen;  // by section and node
    for (const Instruction& at : plan.instructions) {
      const bool is_in_stash = std::ranges::any_of(accesses_of(plan, at), [](const MemoryAccess& of) { return of.arena == Arena::stash; });
      EXPECT_EQ(places.count(at.section, at.node), is_in_stash ? in_flight : 1);
      seen[{at.section, at.node}].insert(places.of(at));
      EXPECT_EQ(places.of(at), is_in_stash ? at.micro_batch % in_flight : 0);
    }
    EXPECT_TRUE(std::ranges::any_of(seen, [&](const auto& of) { return std::ssize(of.second) == in_flight; }));
  }
}

TEST(Segments, EndAtCollectives) {
  Program program = with_backward(gpt_of_rank(3, 1), 6);
  accumulate(program, 2);
  data_parallel(program, Reduce::micro, 40000);
  overlap(program);
  const Plan plan = planned(std::move(program), 2);
  expect_repeatable(plan);
  const auto segments = segments_of(plan);
  EXPECT_GT(segments.size(), 8U);
  for (size_t s = 1; s < segments.size(); ++s) {
    const Instruction &before = plan.instructions[segments[s].begin - 1], &first = plan.instructions[segments[s].begin];
    const bool is_within_a_section = before.section == first.section && before.micro_batch == first.micro_batch;
    EXPECT_TRUE(before.kind != Instruction::Kind::kernel || !is_within_a_section) << s;
  }
}

TEST(Segments, OfRandomProgramsAccessTheSameBytes) {
  for (uint64_t seed = 1; seed <= 10; ++seed) expect_repeatable(planned(training_program(random_program(seed, 12), 3, 3), 3));
}

TEST(InputCopies, AreOfTheInputsThatInstructionsRead) {
  const Plan plan = planned(training_program(small_gpt(), 3, 2), 2);
  const InputCopies copies = input_copies(plan);
  for (SlotId slot = 0; slot < static_cast<SlotId>(plan.program.slots.size()); ++slot) {
    const bool is_input = plan.program.slot(slot).role == Role::input;
    EXPECT_EQ(copies.offsets[static_cast<size_t>(slot)] >= 0, is_input) << plan.program.slot(slot).name;
  }
  EXPECT_EQ(copies.bytes, 2 * align_up(3 * 5 * 4));  // tokens and targets

  Plan only_update = plan;
  only_update.instructions.erase(only_update.instructions.begin(),
                                 only_update.instructions.begin() + static_cast<std::ptrdiff_t>(plan.begin_of_update));
  EXPECT_EQ(input_copies(only_update).bytes, 0) << "as of a stage that reads none";
}

}  // namespace
}  // namespace st
