// The windows in which an update computes with optimizer state that is in the host's memory.
#include "plan/state_windows.h"

#include <gtest/gtest.h>

#include <set>

#include "base/text.h"
#include "models/gpt.h"
#include "plan/accesses.h"
#include "plan/ordering.h"
#include "planner/rank_plan.h"

namespace st {
namespace {

Plan offloading_plan(const std::string& more, const char* offload = "optimizer") {
  PlannedRun run{.model = build_gpt({.layers = 4, .width = 64, .heads = 4, .context = 32, .vocabulary = 256}),
                 .recipe = {},
                 .machine = machine_named("h100-sxm")};
  run.recipe.merge(text(R"({"batch":2,"offload":")", offload, R"(")", more, "}"));
  return plan_of_rank(run, 0).plan;
}

/// The first instruction of a kind for a window, or of the nodes that compute with it.
size_t first_copy(const Plan& plan, Instruction::Kind kind, int32_t window) {
  for (size_t i = 0; i < plan.instructions.size(); ++i)
    if (plan.instructions[i].kind == kind && plan.instructions[i].window == window) return i;
  return plan.instructions.size();
}
size_t first_node(const Plan& plan, const StateWindow& window) {
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& at = plan.instructions[i];
    if (!at.is_copy() && at.section == window.section && at.node >= window.begin && at.node < window.end) return i;
  }
  return plan.instructions.size();
}

TEST(StateWindows, AreFetchedWhileTheOneBeforeComputes) {
  for (const char* more : {"", R"(,"precision":"bf16","optimizer":"adamw-8bit")", R"(,"ema_decay":0.9)", R"(,"optimizer":"muon")"}) {
    SCOPED_TRACE(more);
    const Plan plan = offloading_plan(more);
    const auto& windows = plan.memory.windows;
    ASSERT_GT(windows.size(), 3U);
    EXPECT_EQ(first_copy(plan, Instruction::Kind::fetch, 0), plan.begin_of_update) << "the first one, while the update begins";
    for (size_t w = 0; w < windows.size(); ++w) {
      const auto window = static_cast<int32_t>(w);
      const size_t fetched = first_copy(plan, Instruction::Kind::fetch, window),
                   awaited = first_copy(plan, Instruction::Kind::await_copy, window);
      const size_t computes = first_node(plan, windows[w]);
      EXPECT_LT(fetched, awaited) << w;
      EXPECT_LT(awaited, computes) << w;
      EXPECT_GT(first_copy(plan, Instruction::Kind::write_back, window), computes) << w;
      if (w > 0 && !follows(windows[w], windows[w - 1])) {
        EXPECT_LT(fetched, first_node(plan, windows[w - 1])) << w;
      }
    }
    EXPECT_NE(print_instructions(plan).find(text("update %", windows[0].begin)), std::string::npos);
    EXPECT_NE(print_instructions(plan).find(": write back, "), std::string::npos);
    size_t last = plan.instructions.size();
    while (!plan.instructions[last - 1].is_copy()) --last;
    EXPECT_EQ(plan.instructions[last - 1].kind, Instruction::Kind::await_copy) << "the host finds all of it written back";
  }
}

TEST(StateWindows, HaveAllThatNodesUseOfTheState) {
  for (const char* more : {"", R"(,"ema_decay":0.9)", R"(,"optimizer":"adafactor")", R"(,"ranks":4,"zero":2)"}) {
    SCOPED_TRACE(more);
    const Plan plan = offloading_plan(more);
    const int64_t bytes = plan.memory.of(Arena::optimizer);
    int64_t copied = 0;
    for (const Instruction& at : plan.instructions)
      for (const MemoryAccess& access : accesses_of(plan, at)) {
        EXPECT_TRUE(access.arena != Arena::optimizer || at.is_copy());
        if (access.arena == Arena::optimizer && at.kind == Instruction::Kind::fetch) copied += access.end - access.begin;
        EXPECT_TRUE(access.arena != Arena::buckets || access.end <= plan.memory.of(Arena::buckets));
      }
    EXPECT_GE(copied, bytes) << "all of it is used";
    EXPECT_LE(copied, bytes + bytes / 8) << "few bytes twice";
    EXPECT_EQ(plan.memory.on_device(Arena::optimizer), 0);
    EXPECT_EQ(plan.memory.host_bytes(), bytes);
  }
}

/// Two neighbours do not overlap; there is room for them in the stash, or it is added to the buckets.
TEST(StateWindows, HaveRoomForTwoAtATime) {
  for (const auto& [more, arena] : {std::pair{"", Arena::stash}, {R"(,"stages":2,"ranks":2)", Arena::buckets}}) {
    SCOPED_TRACE(more);
    const Plan plan = offloading_plan(more), resident = offloading_plan(more, "none");
    const auto& windows = plan.memory.windows;
    int64_t room = 0;
    for (size_t w = 0; w + 1 < windows.size(); ++w) {
      int64_t both = 0;
      for (const StagedBytes& of : windows[w].copies) both += of.bytes;
      for (const StagedBytes& of : windows[w + 1].copies) both += of.bytes;
      room = std::max(room, both);
      for (const StagedBytes& of : windows[w].copies) {
        EXPECT_EQ(of.staged.arena, arena);
        EXPECT_LE(of.staged.offset + of.bytes, plan.memory.of(arena));
        for (const StagedBytes& next : windows[w + 1].copies)
          EXPECT_TRUE(of.staged.offset + of.bytes <= next.staged.offset || next.staged.offset + next.bytes <= of.staged.offset) << w;
      }
    }
    EXPECT_LT(room, plan.memory.of(Arena::optimizer) / 2);
    const int64_t added = arena == Arena::buckets ? room : 0;
    EXPECT_EQ(plan.memory.of(Arena::buckets), align_up(resident.memory.of(Arena::buckets)) + added);
    EXPECT_EQ(plan.memory.device_bytes(), resident.memory.device_bytes() - plan.memory.of(Arena::optimizer) + added);
  }
}

/// Windows of parameters in each micro-batch, of gradients in backward, and of both in the update; no copy that lasts is made again for
/// nothing.
TEST(StateWindows, HaveAllThatForwardAndBackwardUseOfParametersAndGradients) {
  for (const char* more : {R"(,"accumulate":3,"precision":"bf16")", R"(,"ranks":2,"zero":2,"accumulate":2,"bucket":65536)",
                           R"(,"ranks":2,"tensor":2,"accumulate":2)"}) {
    SCOPED_TRACE(more);
    const Plan plan = offloading_plan(more, "gradients");
    std::set<std::pair<Phase, Arena>> copied;
    int64_t lasting = 0, largest = 0;
    for (const Instruction& at : plan.instructions)
      for (const MemoryAccess& access : accesses_of(plan, at)) {
        if (!plan.memory.on_host[static_cast<size_t>(access.arena)]) continue;
        EXPECT_TRUE(at.is_copy()) << print_instructions(plan);
        copied.insert({plan.program.sections[static_cast<size_t>(at.section)].phase, access.arena});
        lasting += at.makes == Copy::lasting ? 1 : 0;
      }
    const std::set<std::pair<Phase, Arena>> wanted = {{Phase::forward, Arena::parameters}, {Phase::backward, Arena::parameters},
                                                      {Phase::backward, Arena::gradients}, {Phase::update, Arena::parameters},
                                                      {Phase::update, Arena::gradients},   {Phase::update, Arena::optimizer}};
    EXPECT_EQ(copied, wanted);
    EXPECT_EQ(lasting > 0, plan.program.slots.end() != std::ranges::find(plan.program.slots, Role::working, &Slot::role));
    for (const StateWindow& window : plan.memory.windows) {
      int64_t bytes = 0;
      for (const StagedBytes& of : window.copies) bytes += of.bytes;
      largest = std::max(largest, bytes);
    }
    EXPECT_LT(largest, plan.memory.host_bytes() / 8);
    EXPECT_EQ(explain(plan).find("from the host's memory, lasting copy") != std::string::npos, lasting > 0);
    EXPECT_EQ(ordering_of(plan).faults.size(), 0U);
  }
}

/// A tied weight is sent to the stage that uses it again.
TEST(StateWindows, OfMessagesHaveARoomThatNoOtherHas) {
  const Plan plan = offloading_plan(R"(,"ranks":2,"stages":2,"accumulate":2,"schedule":"interleaved","stage_chunks":2)", "gradients");
  int messages = 0;
  for (const StateWindow& window : plan.memory.windows) {
    if (plan.program.sections[static_cast<size_t>(window.section)].graph[window.begin].op != Op::send) continue;
    ++messages;
    EXPECT_EQ(window.end, window.begin + 1);
    for (const StateWindow& other : plan.memory.windows) EXPECT_EQ(shares_room(window, other), &window == &other);
  }
  EXPECT_EQ(messages, 1);
  EXPECT_EQ(ordering_of(plan).faults.size(), 0U);
}

TEST(StateWindows, OfOneRunThatHaveTheSameRoomAreNotThereAtTheSameTime) {
  const auto window = [](int64_t begin, int64_t bytes) {
    return StateWindow{.copies = {{.home = {}, .staged = {Arena::buckets, begin}, .bytes = bytes}}};
  };
  EXPECT_TRUE(shares_room(window(64, 64), window(0, 128)));
  EXPECT_FALSE(shares_room(window(128, 64), window(0, 128)));
}

TEST(StateWindows, FollowWhatWritesTheSameBytes) {
  const auto window = [](int64_t begin, int64_t bytes, bool is_written) {
    return StateWindow{.copies = {{.home = {Arena::optimizer, begin}, .staged = {}, .bytes = bytes, .is_written = is_written}}};
  };
  EXPECT_TRUE(follows(window(64, 64, false), window(0, 128, true)));
  EXPECT_FALSE(follows(window(64, 64, true), window(0, 128, false)));
  EXPECT_FALSE(follows(window(128, 64, true), window(0, 128, true)));
}

}  // namespace
}  // namespace st
