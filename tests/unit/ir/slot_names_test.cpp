// slot_named() finds what a search through all slots finds, whatever has been done to them.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/text.h"
#include "ir/program.h"

namespace st {
namespace {

void expect_found(const Program& program, int names) {
  for (int i = 0; i < names; ++i) {
    const std::string name = text("slot.", i);
    const auto found = std::ranges::find(program.slots, name, &Slot::name);
    EXPECT_EQ(program.slot_named(name), found == program.slots.end() ? -1 : static_cast<SlotId>(found - program.slots.begin())) << name;
  }
}

TEST(SlotNames, FindTheSlotsThatAreThere) {
  constexpr int kNames = 400;
  Program program;
  std::mt19937 random(1);
  for (int change = 0; change < 1000; ++change) {
    const std::string name = text("slot.", random() % kNames);
    if (program.slot_named(name) >= 0) continue;
    const size_t slot = program.slots.empty() ? 0 : random() % program.slots.size();
    if (change % 3 != 0 || program.slots.empty())
      program.add_slot({.name = name, .type = {}, .role = Role::report, .init = {}});
    else
      program.rename(static_cast<SlotId>(slot), name);
    if (change % 100 == 0) expect_found(program, kNames);
  }
  EXPECT_GT(program.slots.size(), 100U);
  expect_found(program, kNames);
  expect_found(Program(program), kNames);
  program.slots.pop_back();  // the names do not know
  expect_found(program, kNames);
  program.add_slot({.name = "another", .type = {}, .role = Role::report, .init = {}});
  expect_found(program, kNames);
  EXPECT_EQ(program.slot_named("another"), std::ssize(program.slots) - 1);
  program.slots.erase(program.slots.begin(), program.slots.begin() + 50);
  program.names.read_again(program.slots);
  expect_found(program, kNames);
  const Program moved = std::move(program);
  expect_found(moved, kNames);
  program = Program();
  program.add_slot({.name = "slot.1", .type = {}, .role = Role::report, .init = {}});
  expect_found(program, kNames);
}

}  // namespace
}  // namespace st
