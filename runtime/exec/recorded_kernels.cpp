#include "exec/recorded_kernels.h"

#include <algorithm>

namespace st {

RecordedKernels::RecordedKernels(const Plan& plan) : segments_(segments_of(plan)), segment_at_(plan.instructions.size(), -1) {
  int32_t recordings = 0;
  for (size_t s = 0; s < segments_.size(); ++s) {
    segment_at_[segments_[s].begin] = static_cast<int32_t>(s);
    recordings = std::max(recordings, segments_[s].recording + 1);
  }
  recordings_.resize(static_cast<size_t>(recordings));
}

void RecordedKernels::launch(Stream& stream, const KernelSegment& segment, bool makes_lasting_copies,
                             const std::function<void(size_t at)>& give) {
  const bool has_lasting_copies = segment.makes_lasting_copies && makes_lasting_copies;
  std::unique_ptr<Recording>& recording = recordings_[static_cast<size_t>(segment.recording)][has_lasting_copies ? 1 : 0];
  if (recording == nullptr) {
    stream.begin_recording();
    try {
      for (size_t at = segment.begin; at < segment.end; ++at) give(at);
    } catch (...) {
      stream.abandon_recording();  // its own error would hide this one
      throw;
    }
    recording = stream.end_recording();
  }
  recording->launch(stream);
}

bool RecordedKernels::is_empty() const {
  return std::ranges::all_of(recordings_, [](const Recordings& of) { return !of[0] && !of[1]; });
}

void RecordedKernels::forget() {
  for (Recordings& of : recordings_) of = {};
}

}  // namespace st
