#include "plan/kernel_segments.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "plan/operand_places.h"

namespace st {
namespace {

bool is_recorded(const Plan& plan, const Instruction& at) {
  if (at.kind != Instruction::Kind::kernel) return false;
  const Op op = plan.program.sections[static_cast<size_t>(at.section)].graph[at.node].op;
  return op != Op::host && op != Op::host_backward;
}

/// Whether one run may end, or another begin, between the instruction and the next one.
bool is_run_border(const Plan& plan, size_t next) {
  if (next == plan.begin_of_update) return true;
  const Instruction &a = plan.instructions[next - 1], &b = plan.instructions[next];
  const Section& before = plan.program.sections[static_cast<size_t>(a.run())];
  const Section& after = plan.program.sections[static_cast<size_t>(b.run())];
  return a.micro_batch != b.micro_batch || before.phase != after.phase || before.chunk != after.chunk;
}

}  // namespace

std::vector<KernelSegment> segments_of(const Plan& plan) {
  const OperandPlaces places(plan);
  using Kernels = std::vector<std::array<int32_t, 3>>;  // section, node, places of its operands
  std::map<Kernels, int32_t> recordings;
  std::vector<KernelSegment> segments;
  for (size_t begin = 0; begin < plan.instructions.size();) {
    Kernels kernels;
    bool makes_lasting_copies = false;
    size_t end = begin;
    for (; end < plan.instructions.size() && is_recorded(plan, plan.instructions[end]); ++end) {
      if (end > begin && is_run_border(plan, end)) break;
      const Instruction& at = plan.instructions[end];
      kernels.push_back({at.section, at.node, places.of(at)});
      makes_lasting_copies = makes_lasting_copies || at.makes == Copy::lasting;
    }
    if (kernels.empty()) {
      ++begin;
      continue;
    }
    const int32_t recording = recordings.emplace(std::move(kernels), static_cast<int32_t>(recordings.size())).first->second;
    segments.push_back({begin, end, recording, makes_lasting_copies});
    begin = end;
  }
  return segments;
}

int64_t recorded_kernels(const Plan& plan) {
  int64_t kernels = 0;
  int32_t recordings = 0;
  for (const KernelSegment& segment : segments_of(plan)) {
    if (segment.recording < recordings) continue;  // has been counted
    ++recordings;
    for (size_t i = segment.begin; i < segment.end; ++i)
      kernels += segment.makes_lasting_copies && plan.instructions[i].makes != Copy::lasting ? 2 : 1;
  }
  return kernels;
}

std::string print_segments(const Plan& plan) {
  const std::vector<KernelSegment> segments = segments_of(plan);
  size_t kernels = 0;
  int32_t recordings = 0;
  for (const KernelSegment& segment : segments) {
    kernels += segment.end - segment.begin;
    recordings = std::max(recordings, segment.recording + 1);
  }
  return text("segments: ", segments.size(), " of ", kernels, " kernels, which a device may record as ", recordings, "\n");
}

}  // namespace st
