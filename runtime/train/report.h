// The report of a run: one HTML page that stands alone. No network, no files beside it, nothing to install; light and dark as the reader's
// system is; readable without scripts (they only show values under the pointer).
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "train/metrics.h"
#include "train/timeline.h"

namespace st {

struct MemoryUse {
  std::string role;  // "parameters", "gradients", ...
  int64_t bytes = 0;
};

struct RunFact {
  std::string name, value;
};

struct FactGroup {  // a small table: "Model", "Data", "Recipe", "Machine"
  std::string title;
  std::vector<RunFact> facts;
};

/// Everything that the page shows, as plain text and numbers. What is empty or NaN is left out.
struct RunSummary {
  std::string title;     // "gpt, 4 layers of width 128"
  std::string subtitle;  // "on README.md, cpu, 2 threads, 21 November 2026"
  std::vector<StepReport> steps;
  std::vector<StepTimes> timeline;  // of the last steps of several ranks
  std::vector<ValidationPoint> validation;
  int64_t step_past_schedule = 0;                                 // the first one past the end of the learning rate's schedule; 0: none
  double bigram_loss = std::numeric_limits<double>::quiet_NaN();  // of the same validation tokens
  std::vector<MemoryUse> memory;
  int64_t parameters = 0;
  double seconds = 0;
  std::string prompt, sample;  // what the trained model wrote, and what it was given to start from
  std::vector<FactGroup> facts;
  std::string state;  // digest of the final state
};

/// The page. Under 100 KB for a run of 10,000 steps: long series are thinned to the lowest and highest of each stretch. All text is
/// escaped.
std::string html_report(const RunSummary& run);

}  // namespace st
