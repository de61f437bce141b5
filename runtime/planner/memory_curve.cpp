#include "planner/memory_curve.h"

#include <algorithm>
#include <map>
#include <utility>

namespace st {
namespace {

/// The greatest sum of what lives at the same time in a section, by arena. A view keeps its source alive.
std::array<int64_t, kArenas> greatest_use(const Plan& plan, int32_t section) {
  const Graph& graph = plan.program.sections[static_cast<size_t>(section)].graph;
  const auto nodes = static_cast<size_t>(graph.size());
  std::vector<std::vector<int32_t>> last(nodes);
  for (size_t n = 0; n < nodes; ++n) last[n].assign(graph.nodes[n].out.size(), static_cast<int32_t>(n));
  for (size_t n = nodes; n-- > 0;) {
    const Node& node = graph.nodes[n];
    int32_t until = static_cast<int32_t>(n);
    if (is_view(node.op))
      for (const int32_t of_output : last[n]) until = std::max(until, of_output);
    for (const Value v : node.in) {
      int32_t& of_source = last[static_cast<size_t>(v.node)][static_cast<size_t>(v.output)];
      of_source = std::max(of_source, until);
    }
  }
  struct Change {
    int32_t node;
    size_t arena;
    int64_t bytes;
  };
  std::vector<Change> changes;
  for (size_t n = 0; n < nodes; ++n)
    for (size_t o = 0; o < graph.nodes[n].out.size() && !is_view(graph.nodes[n].op) && graph.nodes[n].op != Op::load; ++o) {
      const Place& place = plan.memory.values[static_cast<size_t>(section)][n][o];
      if (place.arena != Arena::activations && place.arena != Arena::buckets && place.arena != Arena::workspace) continue;
      const int64_t bytes = align_up(graph.nodes[n].out[o].bytes());
      const auto arena = static_cast<size_t>(place.arena);
      changes.push_back({static_cast<int32_t>(n), arena, bytes});
      changes.push_back({last[n][o] + 1, arena, -bytes});
    }
  std::ranges::stable_sort(changes, {}, [](const Change& of) { return std::pair(of.node, of.bytes > 0); });
  std::array<int64_t, kArenas> now{}, most{};
  for (const Change& of : changes) {
    now[of.arena] += of.bytes;
    most[of.arena] = std::max(most[of.arena], now[of.arena]);
  }
  for (size_t a = 0; a < kArenas; ++a) most[a] = std::min(most[a], plan.memory.bytes[a]);
  return most;
}

/// For each chunk and micro-batch the moments between which its buffer of the stash is in use. What else the stash has counts as used all
/// the time.
void add_stash(const Plan& plan, std::vector<MemoryMoment>& moments) {
  std::map<std::pair<int32_t, int32_t>, std::pair<size_t, size_t>> used;
  for (size_t i = 0; i < moments.size(); ++i) {
    const Section& section = plan.program.sections[static_cast<size_t>(moments[i].section)];
    if (section.phase == Phase::update) continue;
    const auto [found, is_new] = used.try_emplace({section.chunk, moments[i].micro_batch}, i, i);
    if (!is_new) found->second.second = i;
  }
  const auto& buffers = plan.memory.stash;
  for (const auto& [of, range] : used)
    if (static_cast<size_t>(of.first) < buffers.size())
      for (size_t i = range.first; i <= range.second; ++i)
        moments[i].bytes[static_cast<size_t>(Arena::stash)] += buffers[static_cast<size_t>(of.first)].bytes;
  const size_t chunks = used.empty() ? 0 : static_cast<size_t>(used.rbegin()->first.first) + 1;
  int64_t parts = 0;
  for (size_t chunk = 0; chunk < std::min(chunks, buffers.size()); ++chunk) parts += buffers[chunk].bytes * buffers[chunk].count;
  for (MemoryMoment& moment : moments) {
    int64_t& stash = moment.bytes[static_cast<size_t>(Arena::stash)];
    stash = std::min(stash + std::max<int64_t>(0, plan.memory.of(Arena::stash) - parts), plan.memory.of(Arena::stash));
  }
}

}  // namespace

std::vector<MemoryMoment> memory_curve(const Plan& plan, const RankTrace& trace) {
  std::vector<MemoryMoment> moments;
  std::map<int32_t, std::array<int64_t, kArenas>> by_section;
  double now = 0;
  for (const TraceEvent& event : trace.events) {
    if (event.kind == TraceEvent::Kind::exchange) now += event.seconds;
    if (event.kind != TraceEvent::Kind::compute || event.section < 0) continue;
    if (moments.empty() || moments.back().section != event.section || moments.back().micro_batch != event.micro_batch) {
      const auto [found, is_new] = by_section.try_emplace(event.section);
      if (is_new) {
        found->second = greatest_use(plan, event.section);
        for (const Arena arena : {Arena::parameters, Arena::gradients, Arena::optimizer, Arena::packed, Arena::control})
          found->second[static_cast<size_t>(arena)] = plan.memory.on_device(arena);
      }
      moments.push_back({event.section, event.micro_batch, now, now, found->second});
    }
    now += event.seconds;
    moments.back().ended = now;
  }
  add_stash(plan, moments);
  return moments;
}

}  // namespace st
