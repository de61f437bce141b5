// The last step of a pipeline as inline SVG, one lane per rank: its actions as boxes, with their micro-batches.
#pragma once

#include <string>

#include "report/pipeline_times.h"

namespace st {

/// Lanes that are drawn: at most kMostLanes (rank_lanes.h), and fewer of a step with so many actions that the page would grow too large.
size_t drawn_lanes(const PipelineTimes& times);

/// The <svg> element, as wide as the time from the first action to the end of the last one.
/// - A box is the time of an action after its wait, with collectives in it. The end of the lane has the rank's bubble: the gaps, and the
///   collectives that computing did not hide.
/// - The number in a box is the micro-batch, underlined in a stage's second and later chunks; narrow boxes have none.
std::string stage_lanes(const PipelineTimes& times);

}  // namespace st
