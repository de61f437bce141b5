// One run of `scaletrain train`: the steps, the evaluations between them, log, report and sample.
#pragma once

#include <memory>
#include <string>

#include "early_stopping.h"
#include "options.h"
#include "run_checkpoints.h"
#include "run_ranks.h"

namespace cli {

struct RunOptions {
  int64_t steps = 0;
  std::string log, report, trace;  // paths; "" for none
  std::string prompt;              // "" for none
  std::string machine;             // JSON of a measured machine, for the forecast in report and trace; "": this machine by a table
  EarlyStopping stopping{0, 0};
  bool averages = false;  // the recipe keeps a moving average of the weights
};

/// The objects of a run.
struct RunParts {
  Model model;
  Data train, validation;  // validation may be null
  Trainer trainer;
  std::unique_ptr<RunCheckpoints> checkpoints;  // null: no checkpoints
  st_context* made_in = nullptr;                // context of all of them; borrowed
  const RunRanks* ranks = nullptr;              // ranks of the run; borrowed
  int64_t context = 0;                          // tokens per row
  int64_t rows_per_step = 0;
  Json known_model;             // ModelChoice::known(), kept in checkpoints
  std::string title, subtitle;  // of the report
  Json facts;                   // groups of facts for the report
};

/// Returns the exit status. Throws Failure.
int train(const RunParts& parts, const RunOptions& options);

}  // namespace cli
