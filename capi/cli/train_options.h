// The options of `scaletrain train`, as text until they are parsed.
#pragma once

#include <cstdint>
#include <string>

#include "model_choice.h"
#include "options.h"
#include "run_checkpoints.h"
#include "run_ranks.h"
#include "training_run.h"

namespace cli {

constexpr int64_t kUntrainedSteps = 1'000'000;  // of a run with --explain alone: long enough for any warm-up

struct TrainOptions {
  ModelOptions sizes;
  std::string data, validation = "0.1";
  std::string steps, init, log, report, trace, machine, sample, transport, deadline = "60";
  std::string checkpoint, every, minutes, keep, keep_every, keep_best;
  bool explain = false, resume = false;
  RecipeOptions recipe;

  void add(CLI::App& app);
  // The parsed options; they throw Failure(kRefused).
  RunOptions run() const;  // files that the run could not write are refused now
  CheckpointOptions checkpoints() const;
  double deadline_seconds() const;
  /// Collective call. Refuses options that differ between ranks: a rank that alone saves or writes a log would wait for the others in a
  /// different place.
  void check_alike(const RunRanks& ranks) const;
};

}  // namespace cli
