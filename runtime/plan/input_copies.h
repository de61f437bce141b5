// Where a device of its own memory has the rows that the host gives.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace st {

struct InputCopies {
  std::vector<int64_t> offsets;  // bytes, by slot; -1: no instruction reads it, or it is no input
  int64_t bytes = 0;             // of the device's memory
  /// Bytes of each of the two halves of pinned memory through which rows, and the numbers of a step, go to the device.
  int64_t upload_bytes() const { return bytes + kNumbers; }
  static constexpr int64_t kNumbers = 4096;
};

/// The inputs that instructions of the plan read, one after another, 64-byte aligned: one micro-batch at a time is there.
InputCopies input_copies(const Plan& plan);

}  // namespace st
