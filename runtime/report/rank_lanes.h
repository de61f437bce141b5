// A run's last steps as inline SVG, one lane per rank: computing time and time in collectives.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "report/timeline.h"

namespace st {

constexpr size_t kMostLanes = 32;

/// The <svg> element, with at most kMostLanes ranks.
/// - Steps are side by side, the oldest on the left; a step is as wide as the time of its slowest rank.
/// - In each step a lane shows the rank's computing, with its end hatched for the share that overlapped collectives (whenever that
///   was), then the collective time that was not hidden.
/// - The figures are in a <title>, which a browser shows under the pointer.
std::string rank_lanes(std::span<const StepTimes> steps);

/// Each rank's times summed over all steps; there must be at least one.
StepTimes sum_of(std::span<const StepTimes> steps);

}  // namespace st
