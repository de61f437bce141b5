// The recordings that a device has made of a plan's kernels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "backend/device_stream.h"
#include "plan/kernel_segments.h"

namespace st {

class RecordedKernels {
 public:
  explicit RecordedKernels(const Plan& plan);

  /// The segment that begins at an instruction; null: none.
  const KernelSegment* at(size_t instruction) const {
    const int32_t segment = segment_at_[instruction];
    return segment < 0 ? nullptr : &segments_[static_cast<size_t>(segment)];
  }
  /// Gives a segment's kernels to `stream`. The first time, and after forget(), records what `give` gives to it of each instruction, which
  /// may leave out lasting copies of weights.
  void launch(Stream& stream, const KernelSegment& segment, bool makes_lasting_copies, const std::function<void(size_t at)>& give);
  bool is_empty() const;
  /// All streams have finished those that were launched.
  void forget();

 private:
  using Recordings = std::array<std::unique_ptr<Recording>, 2>;  // without lasting copies of weights, and with them

  std::vector<KernelSegment> segments_;
  std::vector<int32_t> segment_at_;  // by first instruction; -1: none begins there
  std::vector<Recordings> recordings_;
};

}  // namespace st
