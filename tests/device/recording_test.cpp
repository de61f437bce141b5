// Kernels that a device records once are given again with the operands that they have then.
#include <gtest/gtest.h>

#include "delayed_backend.h"
#include "exec/executor.h"
#include "ir/build.h"
#include "plan/input_copies.h"
#include "plan/memory_plan.h"
#include "refusal.h"
#include "training.h"

namespace st {
namespace {

std::unique_ptr<DelayedBackend> late_device(const std::shared_ptr<MemorySource>& source) {
  return std::make_unique<DelayedBackend>(make_reference_backend(source), source, Order::late);
}

/// A trainer on a device, and how often it has launched a recording.
struct Recorded {
  DelayedBackend* device = nullptr;
  Training training{.device = "cpu", .recipe = {.batch = 3}, .ignored = true};
  std::shared_ptr<Model> model;
  std::unique_ptr<Trainer> trainer;

  explicit Recorded(int64_t accumulate) {
    training.recipe.accumulate = accumulate;
    ContextOptions options{.threads = 2, .log = {}, .parallel = {}, .memory = {}};
    options.make_backend = [this](const std::shared_ptr<MemorySource>& source) {
      auto made = late_device(source);
      device = made.get();
      return made;
    };
    model = std::make_shared<Model>(std::make_shared<Context>(options), build_gpt(training.options), 1);
    trainer = training.trainer_of(model, training.data());
  }
  /// Those of a call.
  template <class Call>
  int64_t launches_of(const Call& call) const {
    const int64_t before = device->launches();
    call();
    return device->launches() - before;
  }
};

TEST(Recording, AStepLaunchesTwoForEachMicroBatchAndOneForTheUpdate) {
  const Recorded of(4);
  for (int step = 0; step < 3; ++step) EXPECT_EQ(of.launches_of([&] { of.trainer->step(); }), 2 * 4 + 1);
}

TEST(Recording, AStepInSlicesLaunchesNone) {
  const Recorded of(2);
  of.trainer->step();
  const auto in_slices = [&] {
    while (!of.trainer->advance(0)) {
    }
  };
  EXPECT_EQ(of.launches_of(in_slices), 0);
}

TEST(DeviceMemoryNeed, HasRoomForInputsAndIsAskedForBeforeAnythingIsAllocated) {
  Recorded of(2);
  const Plan& plan = of.trainer->plan();
  const int64_t need = plan.memory.beside_parameters() + input_copies(plan).bytes;
  of.trainer = nullptr;
  const int64_t before = of.device->allocated_bytes();
  const auto make = [&] { of.trainer = of.training.trainer_of(of.model, of.training.data()); };
  of.device->set_free_bytes(need - 1);
  EXPECT_TRUE(refuses(Code::out_of_memory, {text(need, " bytes")}, make));
  EXPECT_EQ(of.device->allocated_bytes(), before);
  of.device->set_free_bytes(need);
  make();
  of.trainer->step();
}

/// y = x + x, of an x that the caller binds to the device's memory.
TEST(Recording, WhereAnOperandHasMovedIsMadeAgain) {
  const Type four{DType::f32, {4}, {}};
  Program program;
  program.sections.emplace_back();
  program.batch = 4;
  Builder b(program, 0);
  const Value x = b.input("x", four.dtype, four.shape);
  Slot result;
  result.name = "y", result.type = four, result.role = Role::report;
  const SlotId y = program.add_slot(result);
  b.store(b.add(x, x), y);
  const StepOrder order = in_turn(program, 1);
  MemoryLayout layout = memory_plan(program, order, [](auto&&...) { return int64_t{0}; });

  const auto device = late_device(std::make_shared<MemorySource>());
  Storage storage(*device);
  Workers workers(1);
  Executor executor(make_plan(program, std::move(layout), order), storage, workers, nullptr);
  const auto input = [&](float value) {
    auto made = device->allocate(16, MemoryRole::inputs);
    const std::array<float, 4> values = {value, value, value, value};
    device->to_device(made->data(), values.data(), 16);
    return made;
  };
  const auto one = input(1), two = input(2);
  for (const auto& [at, doubled] : {std::pair{&one, 2.0F}, {&two, 4.0F}, {&one, 2.0F}, {&one, 2.0F}}) {
    executor.bind(program.slot_named("x"), (*at)->data());
    executor.run({});
    std::array<float, 4> values{};
    executor.read(values.data(), executor.slot(y).data, 16);
    EXPECT_EQ(values, (std::array<float, 4>{doubled, doubled, doubled, doubled}));
  }
  EXPECT_EQ(device->launches(), 4);
  EXPECT_EQ(Executor::input_bytes(executor.plan(), *device), align_up(16));
  EXPECT_EQ(executor.copied_bytes(), align_up(16) + 2 * align_up(input_copies(executor.plan()).upload_bytes()));
}

}  // namespace
}  // namespace st
