// A kernel's arguments, and the table of a backend's kernels: all of a backend that a kernel's file needs.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "backend/address.h"
#include "base/dtype.h"
#include "base/shape.h"
#include "base/workers.h"
#include "ir/attrs.h"
#include "ir/op.h"

namespace st {

/// A kernel's operand: contiguous, row-major, 64-byte aligned unless it is the host's own memory. Borrowed for the duration of the call.
struct Operand {
  Address data;
  DType dtype = DType::f32;
  Shape shape;

  int64_t elements() const { return shape.elements(); }
};

/// A kernel's arguments. Outputs do not overlap inputs, except that the output of an elementwise op may be exactly one of its inputs.
struct Call {
  std::span<const Operand> in, out, reads, writes;  // reads, writes: slots (optimizer ops have the same slots in both)
  const Attrs* attrs = nullptr;
  Address workspace;            // 64-byte aligned, not cleared
  int64_t workspace_bytes = 0;  // those of workspace_need()
  Workers* workers = nullptr;
};

/// One op on one backend. needs.h says what memory it needs.
struct Kernel {
  void (*run)(const Call& call) = nullptr;  // allocates nothing; may throw Error for bad data (a token outside the vocabulary)
};

using OpTable = std::array<Kernel, kOps>;

}  // namespace st
