#include "plan/step_order.h"

#include <gmock/gmock.h>

#include <sstream>

#include "order_in_flight.h"
#include "plan/plan.h"
#include "random_program.h"
#include "small_program.h"
#include "thrown_error.h"

namespace st {
namespace {

std::string refusal_of(const Program& program, const StepOrder& order) {
  const Error error = error_of([&] { verify_order(program, order); });
  if (error.code() == Code::ok) return "";
  EXPECT_EQ(error.code(), Code::invalid_argument);
  return error.message();
}

TEST(StepOrder, InTurnAndInFlightAreLegal) {
  const Program program = training_program(small_gpt(), 2, 3);
  EXPECT_EQ(refusal_of(program, in_turn(program, 3)), "");
  for (const int32_t in_flight : {1, 2, 3}) {
    const StepOrder order = order_in_flight(program, 3, in_flight);
    EXPECT_EQ(refusal_of(program, order), "");
    EXPECT_EQ(st::in_flight(program, order), std::vector<int32_t>{in_flight});
    EXPECT_EQ(micro_batches_of(order), 3);
  }
}

TEST(StepOrder, AnUpdateAloneHasNothingInFlightBesidesIt) {
  Program program = training_program(small_gpt(), 2, 3);
  program.sections.erase(program.sections.begin(), program.sections.begin() + 2);
  EXPECT_EQ(in_flight(program, {{0, 0}}), std::vector<int32_t>{1});
}

TEST(StepOrder, RefusesWhatWouldReadAnothersStashOrAddInAnotherOrder) {
  const Program program = training_program(small_gpt(), 2, 2);
  ASSERT_EQ(program.sections.size(), 3U) << "forward, backward, update";
  using ::testing::HasSubstr;
  const auto expect = [&](const StepOrder& order, const std::string& why) { EXPECT_THAT(refusal_of(program, order), HasSubstr(why)); };
  expect({{0, 0}, {0, 1}, {1, 1}, {1, 0}, {2, 1}}, "section 1 of micro-batch 1: the section's next micro-batch is 0");
  expect({{0, 1}, {1, 1}, {0, 0}, {1, 0}, {2, 1}}, "the section's next micro-batch is 0");
  expect({{1, 0}, {0, 0}, {2, 0}}, "section 1 of micro-batch 0: the micro-batch's next section is 0");
  expect({{0, 0}, {1, 0}, {2, 0}, {0, 1}, {1, 1}}, "it comes after the update");
  expect({{0, 0}, {1, 0}, {2, 0}, {2, 0}}, "the update runs once");
  expect({{0, 0}, {1, 0}, {0, 1}, {2, 1}}, "section 1 runs 1 of 2 micro-batches");
  expect({{3, 0}}, "sections are 0 to 2");
}

TEST(StepOrder, IsPrinted) {
  const Program program = training_program(small_gpt(), 2, 3);
  const auto headings = [&](const StepOrder& order) {
    std::string all;
    const MemoryLayout memory = memory_plan(program, order, [](auto&&...) { return int64_t{0}; });
    std::istringstream lines(print_instructions(make_plan(program, memory, order)));
    for (std::string line; std::getline(lines, line);)
      if (!line.starts_with(' ')) all += line + "\n";
    return all;
  };
  EXPECT_EQ(headings(in_turn(program, 3)), "micro-batch 0\nmicro-batches 1 to 2\nupdate\n");
  EXPECT_EQ(headings(order_in_flight(program, 3, 2)),
            "micro-batch 0\nmicro-batch 1\nmicro-batch 0\nmicro-batch 2\nmicro-batches 1 to 2\nupdate\n");
}

}  // namespace
}  // namespace st
