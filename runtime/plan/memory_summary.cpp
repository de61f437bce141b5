#include "plan/memory_summary.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "base/text.h"
#include "ir/cuts.h"

namespace st {
namespace {

struct Largest {
  std::string name;
  int64_t bytes = 0;
};

bool is_on_device(const MemoryLayout& memory, Arena arena) { return arena != Arena::host && memory.on_device(arena) > 0; }

std::string result_of(const Program& program, const Node& node) {
  const std::string& scope = program.regions[static_cast<size_t>(node.region)].name;
  return text("the result of ", name_of(node.op), " in ", scope.empty() ? "the outermost scope" : scope);
}

/// A slot of the stash has a number for a name: it is named for the node whose result it keeps.
std::string name_in(const Program& program, size_t slot) {
  const std::string& name = program.slots[slot].name;
  if (program.slots[slot].role != Role::stash) return name;
  for (const Section& section : program.sections)
    for (const Node& node : section.graph.nodes)
      if (std::ranges::find(node.writes, static_cast<SlotId>(slot)) != node.writes.end())
        return result_of(program, node.op == Op::store && !node.in.empty() ? section.graph[node.in.front().node] : node) +
               ", kept for backward";
  return name;
}

Largest largest_slot(const Plan& plan) {
  Largest found;
  for (size_t s = 0; s < plan.program.slots.size(); ++s) {
    const Slot& slot = plan.program.slots[s];
    if (!is_on_device(plan.memory, plan.memory.slots[s].arena)) continue;
    const int64_t bytes = own_type(plan.program, slot).bytes();
    if (bytes > found.bytes) found = {name_in(plan.program, s), bytes};
  }
  return found;
}

/// Nothing that has its memory from a slot: those lie in the slots' arenas.
Largest largest_value(const Plan& plan) {
  Largest found;
  for (size_t s = 0; s < plan.program.sections.size(); ++s) {
    const Graph& graph = plan.program.sections[s].graph;
    for (int32_t n = 0; n < graph.size(); ++n) {
      const Node& node = graph[n];
      for (size_t o = 0; o < node.out.size(); ++o) {
        const Arena arena = plan.memory.values[s][static_cast<size_t>(n)][o].arena;
        if ((arena != Arena::activations && arena != Arena::buckets) || !is_on_device(plan.memory, arena)) continue;
        const int64_t bytes = node.out[o].bytes();
        if (bytes <= found.bytes) continue;
        found = {result_of(plan.program, node), bytes};
      }
    }
  }
  return found;
}

}  // namespace

std::string memory_summary(const Plan& plan) {
  constexpr size_t kArenasShown = 3;
  std::array<Arena, kArenas> arenas{};
  for (int32_t a = 0; a < kArenas; ++a) arenas[static_cast<size_t>(a)] = static_cast<Arena>(a);
  std::ranges::stable_sort(arenas, std::ranges::greater(), [&](Arena arena) { return plan.memory.on_device(arena); });
  std::string out;
  for (size_t a = 0; a < kArenasShown; ++a) {
    const int64_t bytes = plan.memory.on_device(arenas[a]);
    if (bytes > 0) out += text(out.empty() ? "" : ", ", name_of(arenas[a]), " ", text_of_bytes(bytes));
  }
  const Largest slot = largest_slot(plan), value = largest_value(plan), &largest = value.bytes > slot.bytes ? value : slot;
  return out + text("; the largest tensor is ", largest.name, ", ", text_of_bytes(largest.bytes));
}

}  // namespace st
