#include "model/rank_pieces.h"

#include <cstring>
#include <utility>
#include <vector>

namespace st {

void broadcast_range(Communicator& ranks, int32_t root, const PieceRange& range, int64_t begin, int64_t width, std::span<std::byte> whole,
                     std::string_view label) {
  std::vector<std::span<std::byte>> runs;
  size_t bytes = 0;
  range.each_run_between(begin, begin + std::ssize(whole) / width, [&](int64_t in_whole, int64_t, int64_t elements) {
    runs.push_back(whole.subspan(static_cast<size_t>((in_whole - begin) * width), static_cast<size_t>(elements * width)));
    bytes += runs.back().size();
  });
  if (runs.empty()) return;
  if (runs.size() == 1) return ranks.broadcast(runs[0].data(), std::ssize(runs[0]), DType::u8, root, label);
  std::vector<std::byte> packed(bytes);  // one message for many short runs
  const auto each_packed = [&](const auto& copy) {
    std::byte* at = packed.data();
    for (const std::span<std::byte> run : runs) copy(run, std::exchange(at, at + run.size()));
  };
  if (ranks.rank() == root) each_packed([](std::span<std::byte> run, std::byte* to) { std::memcpy(to, run.data(), run.size()); });
  ranks.broadcast(packed.data(), std::ssize(packed), DType::u8, root, label);
  if (ranks.rank() != root) each_packed([](std::span<std::byte> run, const std::byte* from) { std::memcpy(run.data(), from, run.size()); });
}

}  // namespace st
