// Runs of kernels that a device can record once and then repeat as one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace st {

/// The instructions [begin, end) of a plan: kernels of one micro-batch and phase, with nothing between them that the host does. Their
/// operands and attributes are the same in each step, except that bind() may move an operand in the host's memory (Arena::host).
struct KernelSegment {
  size_t begin = 0, end = 0;
  int32_t recording = 0;              // segments with the same number run the same kernels on the same operands
  bool makes_lasting_copies = false;  // of weights: steps leave these kernels out where the copies are valid
  bool operator==(const KernelSegment&) const = default;
};

/// All kernels but the host's own ops, by first instruction. Recordings are numbered from 0 by first segment.
/// A segment ends at a collective, a message or a wait, at a host's own op, and where a run may begin or end: at a micro-batch, a phase, a
/// chunk, and at the update.
std::vector<KernelSegment> segments_of(const Plan& plan);

/// Kernels of all recordings of a trainer: each once, and those of segments that make lasting copies also without these.
int64_t recorded_kernels(const Plan& plan);

/// One line (--explain).
std::string print_segments(const Plan& plan);

}  // namespace st
