// Plans for machines that are not here, from profiles as `scaletrain info --json` writes them.
#include <gtest/gtest.h>

#include <cstdio>

#include "base/json.h"
#include "recipe/kernel_needs_of.h"
#include "refusal.h"
#include "training.h"

namespace st {
namespace {

/// Sizes are multiples of every tile's, and on every class each weight is worth packing for 256 rows.
const GptOptions kEven = {.layers = 2, .width = 448, .heads = 7, .context = 64, .vocabulary = 448};
const GptOptions kSmall = {.layers = 2, .width = 64, .heads = 2, .context = 64, .vocabulary = 128};
const Recipe kRecipe = {.batch = 4, .accumulate = 2};

MachineProfile machine_of(std::string_view kernel_class) {
  return parse_machine_profile(text(R"({"version":2,"device":"cpu","kernel_class":")", kernel_class,
                                    R"(","threads":3,"alignment":64,"memory_bytes":0,"reserved_bytes":0,)",
                                    R"("measured":{"clock":0},"table":{"fp32_flops_per_cycle":0,"bf16_flops_per_cycle":0}})"));
}

Plan planned(const GptOptions& gpt, const MachineProfile& machine, const std::string& precision) {
  Recipe recipe = kRecipe;
  recipe.precision = precision;
  return plan_training(build_gpt(gpt), recipe, kernel_needs(machine));
}

TEST(PlannedElsewhere, AStepIsPlannedForEveryKernelClassWithoutABackend) {
  for (const char* precision : {"fp32", "bf16"}) {
    const Plan avx512 = planned(kEven, machine_of("avx512"), precision);
    for (const std::string_view kernel_class : kCpuClasses) {
      const Plan plan = planned(kEven, machine_of(kernel_class), precision);
      EXPECT_EQ(print_instructions(plan), print_instructions(avx512)) << kernel_class;
      MemoryLayout others = plan.memory;
      for (const Arena arena : {Arena::packed, Arena::workspace}) others.bytes[static_cast<size_t>(arena)] = avx512.memory.of(arena);
      EXPECT_EQ(others.bytes, avx512.memory.bytes) << kernel_class;
      // Four bytes for each element, two on sets that multiply bf16 by bf16, and a line to read past the end.
      const int64_t bytes = precision == std::string("bf16") && kernel_class.ends_with("_bf16") ? 2 : 4;
      int64_t packed = 0;
      for (const Slot& slot : plan.program.slots) {
        if (slot.role != Role::packed) continue;
        EXPECT_EQ(slot.type.bytes(), bytes * plan.program.slot(slot.of).type.shape.elements() + 64) << kernel_class << " " << slot.name;
        ++packed;
      }
      EXPECT_GE(packed, 2 * 4 * 2) << "four weights of each block, for forward and backward";
      if (precision == std::string("bf16") || !kernel_class.ends_with("_bf16")) continue;
      EXPECT_EQ(plan.memory.bytes, avx512.memory.bytes) << kernel_class << ": its fp32 kernels are avx512's";
    }
  }
}

TEST(PlannedElsewhere, AnUnknownMachineIsRefused) {
  const auto plans = [](const MachineProfile& machine) { return [machine] { planned(kSmall, machine, "fp32"); }; };
  EXPECT_TRUE(refuses(Code::unavailable, {"device \"tpu\"", "cpu, cuda or reference"}, plans({.device = "tpu"})));
  EXPECT_TRUE(refuses(Code::unavailable, {"no kernel class \"avx1024\""}, plans({.kernel_class = "avx1024"})));
}

TEST(PlannedElsewhere, TheProfileThatInfoWritesGivesThePlanThatRunsHere) {
  FILE* const info = popen(ST_CLI " info --json", "r");
  ASSERT_NE(info, nullptr);
  std::string said;
  for (int c = std::fgetc(info); c != EOF; c = std::fgetc(info)) said += static_cast<char>(c);
  ASSERT_EQ(pclose(info), 0) << said;
  const MachineProfile machine = parse_machine_profile(parse_json(said, "info").find("machine")->dump());
  for (const char* precision : {"fp32", "bf16"}) {
    Training training{.device = "cpu", .threads = machine.threads, .options = kSmall, .recipe = kRecipe};
    training.recipe.precision = precision;
    const auto trainer = training.trainer();
    const Plan plan = planned(kSmall, machine, precision);
    EXPECT_EQ(plan.memory.bytes, trainer->plan().memory.bytes) << precision;
    EXPECT_EQ(print_instructions(plan), print_instructions(trainer->plan())) << precision;
  }
}

}  // namespace
}  // namespace st
