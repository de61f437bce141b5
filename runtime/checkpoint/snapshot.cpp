#include "checkpoint/snapshot.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/stream_copy.h"

namespace st {
namespace {

constexpr int64_t kPiece = int64_t{4} << 20;  // bytes per task: enough tasks for all workers, each large against the cost of a call
constexpr int64_t kPage = 4096;

}  // namespace

void SnapshotTensor::copy_to(int64_t first, std::span<std::byte> out) const {
  if (bytes.empty())
    copy(first, out);
  else
    stream_copy(out, bytes.subspan(static_cast<size_t>(first), out.size()));
}

int64_t Snapshot::lay_out(std::span<const SnapshotTensor> tensors) {
  constexpr auto kAlign = static_cast<int64_t>(MemorySource::kAlign);
  offsets_.resize(tensors.size());
  sizes_.resize(tensors.size());
  int64_t end = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    offsets_[i] = end;
    sizes_[i] = tensors[i].size();
    end += (sizes_[i] + kAlign - 1) / kAlign * kAlign;
  }
  return end;
}

void Snapshot::reserve(int64_t bytes) {
  if (bytes <= memory_.size()) return;
  try {
    if (require_memory_) require_memory_(bytes - memory_.size());
    memory_ = Memory();  // free first, so that the two do not exist together
    memory_ = Memory(bytes, source_, MemoryRole::other);
  } catch (const Error& refusal) {
    fail(refusal.code(), text("checkpoint: no memory for a snapshot of ", text_of_bytes(bytes), ": ", refusal.message(),
                              "; a save that is waited for needs no snapshot"));
  }
}

void Snapshot::make_room(std::span<const SnapshotTensor> tensors, Workers& workers) {
  const int64_t bytes = lay_out(tensors);
  if (bytes <= memory_.size()) return;
  reserve(bytes);
  workers.run_range(bytes, kPiece, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at += kPage) *static_cast<volatile std::byte*>(memory_.data() + at) = std::byte{0};
  });
}

void Snapshot::take(std::span<const SnapshotTensor> tensors, Workers& workers) {
  const int64_t bytes = lay_out(tensors);
  reserve(bytes);
  workers.run_range(bytes, kPiece, [&](int64_t begin, int64_t end) {
    // Starts at the last tensor that begins at or before `begin`; an empty tensor has the same offset as the next one.
    size_t i = static_cast<size_t>(std::ranges::upper_bound(offsets_, begin) - offsets_.begin()) - 1;
    for (; i < tensors.size() && offsets_[i] < end; ++i) {
      const int64_t first = std::max(begin - offsets_[i], int64_t{0}), last = std::min(end - offsets_[i], sizes_[i]);
      if (first >= last) continue;
      tensors[i].copy_to(first, {memory_.data() + offsets_[i] + first, static_cast<size_t>(last - first)});
    }
  });
}

std::span<const std::byte> Snapshot::bytes_of(size_t i) const { return {memory_.data() + offsets_[i], static_cast<size_t>(sizes_[i])}; }

}  // namespace st
