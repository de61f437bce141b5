// The report of a plan: one self-contained HTML page with its memory over time, the timeline of the stages, what ranks wait for, and the
// prices of changes. And the same timeline for trace viewers.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "planner/memory_curve.h"
#include "planner/planned_stages.h"
#include "planner/run_plan.h"

namespace st {

/// A step's seconds with so many ranks, each with the same work.
struct ScalePoint {
  int64_t ranks = 0;
  double seconds = 0;
};

struct PlanPage {
  std::string title, text;  // text: what the plan says, as for a terminal
  const PlannedRun& run;
  const RankPlan& of_rank;
  StepShares shares = {};  // of its step
  std::span<const MemoryMoment> memory = {};
  std::span<const SimulatedSpan> spans = {};  // of a simulated step, of the ranks that are shown
  std::span<const RankClass> classes = {};
  std::span<const PlannedStage> stages = {};
  std::span<const ScalePoint> scaling = {};
};

/// Escapes all text. Loads nothing.
std::string html_of(const PlanPage& page);

/// Chrome's trace format, which chrome://tracing and Perfetto show: a process for each rank, its actions and its waits. Microseconds.
std::string chrome_trace(const PlanPage& page);

}  // namespace st
