// A run's last steps as inline SVG, a lane a rank: how long each computed, and what it waited for.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "train/timeline.h"

namespace st {

constexpr size_t kMostLanes = 32;

/// The <svg> element. Steps stand beside each other, the oldest left, each as wide as its slowest rank took. Of a step a lane shows first
/// what the rank computed, hatched at its end as far as exchange went on beside it (whenever that was), then what was not hidden. The
/// figures are in a <title>, which a browser shows under the pointer. Of more ranks than kMostLanes the first.
std::string rank_lanes(std::span<const StepTimes> steps);

/// Of each rank its times of all steps together, of which there is one at least.
StepTimes sum_of(std::span<const StepTimes> steps);

}  // namespace st
