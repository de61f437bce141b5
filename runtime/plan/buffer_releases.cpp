#include "plan/buffer_releases.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace st {
namespace {

struct OfChunk {
  BufferUse use;
  size_t chunk = 0;
  int64_t begin = 0;
};

/// By first run.
std::vector<OfChunk> shared_uses(const Program& program, const MemoryLayout& memory, const StepOrder& order) {
  const std::vector<std::vector<BufferUse>> uses = buffer_uses(program, order);
  std::vector<OfChunk> all;
  for (size_t c = 0; c < uses.size() && c < memory.stash.size(); ++c) {
    const StashBuffers& buffers = memory.stash[c];
    if (buffers.bytes == 0 || buffers.begins.empty()) continue;
    for (size_t k = 0; k < uses[c].size(); ++k) all.push_back({uses[c][k], c, buffers.begins[k]});
  }
  std::ranges::stable_sort(all, {}, [](const OfChunk& of) { return of.use.from; });
  return all;
}

/// By chunk.
std::vector<std::vector<BufferSend>> sends_of_chunks(const Program& program, const MemoryLayout& memory) {
  std::vector<std::vector<BufferSend>> sends(memory.stash.size());
  for (size_t s = 0; s < program.sections.size(); ++s) {
    const Graph& graph = program.sections[s].graph;
    for (int32_t n = 0; n < graph.size(); ++n) {
      if (graph[n].op != Op::send) continue;
      const StashBuffers* const from = memory.buffers_of(memory.slots[static_cast<size_t>(graph.slot_behind(graph[n].in[0]))]);
      if (from != nullptr) sends[static_cast<size_t>(from - memory.stash.data())].push_back({static_cast<int32_t>(s), n});
    }
  }
  return sends;
}

}  // namespace

std::vector<std::vector<BufferSend>> buffer_releases(const Program& program, const MemoryLayout& memory, const StepOrder& order) {
  std::vector<std::vector<BufferSend>> releases(order.size());
  const std::vector<OfChunk> uses = shared_uses(program, memory, order);
  if (uses.empty()) return releases;
  std::map<int64_t, std::set<size_t>> chunks_at;  // by begin
  for (const OfChunk& of : uses) chunks_at[of.begin].insert(of.chunk);
  const std::vector<std::vector<BufferSend>> sends = sends_of_chunks(program, memory);
  std::map<int64_t, size_t> last_at;
  for (const OfChunk& of : uses) {
    std::vector<BufferSend>& before = releases[of.use.from];
    const auto add = [&](size_t chunk) { before.insert(before.end(), sends[chunk].begin(), sends[chunk].end()); };
    const auto [last, is_first] = last_at.try_emplace(of.begin, of.chunk);
    if (is_first)
      std::ranges::for_each(chunks_at[of.begin], add);
    else
      add(std::exchange(last->second, of.chunk));
  }
  return releases;
}

}  // namespace st
