// The operands of a call in the host's memory, on a device whose memory the host cannot read.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "backend/backend.h"

namespace st {

/// Operands that overlap on the device overlap here in the same way.
class HostMirror {
 public:
  /// Mirrors all operands of a call. Borrows both arguments.
  HostMirror(Backend& backend, const Call& call) : backend_(backend), call_(call) {}
  /// Forgets where operands are: the next call below looks for them, and allocates.
  void place() { memory_ = nullptr; }
  /// Where an operand is here; null if it has no elements, or is not bound.
  std::byte* at(const Operand& operand);
  /// Copies all operands from the device. No stream may have work left that uses them; the same holds below.
  void download();
  /// Copies to the device what the call writes.
  void upload();
  int64_t bytes() const { return memory_ ? bytes_ : 0; }

 private:
  struct Range {
    Address begin;
    int64_t bytes = 0;
    std::byte* here = nullptr;
  };

  void find();

  Backend& backend_;
  const Call& call_;
  std::vector<Range> ranges_;             // by address, disjoint
  std::vector<Range> written_;            // as the call names them
  std::unique_ptr<PinnedMemory> memory_;  // null: not placed
  int64_t bytes_ = 0;                     // of it
};

}  // namespace st
