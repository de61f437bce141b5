// The checkpoints of one run of `scaletrain train`: when to save, and where to go on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "handle.h"
#include "options.h"
#include "run_ranks.h"

namespace cli {

struct CheckpointOptions {
  std::string folder;      // "": none are kept
  int64_t every = 0;       // steps; 0: not by steps
  double minutes = 0;      // 0: not by time
  int64_t keep = 3;        // the newest so many; 0: all
  int64_t keep_every = 0;  // and multiples of it; 0: none
  int64_t keep_best = 0;   // and so many by validation loss
  bool resume = false;
};

/// Rank 0 has the folder and writes it; other ranks read in it what rank 0 has chosen. Where each rank has pieces of the state (zero 1 or
/// more) all of them save and resume together.
class RunCheckpoints {
 public:
  /// Opens the folder, makes it if need be. Refuses one that holds checkpoints when the run is not to resume. Borrows both.
  RunCheckpoints(st_context* context, const CheckpointOptions& options, const RunRanks& ranks);

  /// The keys of the recipe that cut the data's stream become those of the newest checkpoint whose manifest can be read. On another number
  /// of ranks than its own that is its number of micro-batches.
  void keep_batch(st_recipe* recipe) const;
  /// Whether there are any to resume, on all ranks; and the model that the newest whose manifest can be read is of, as ModelChoice takes
  /// it; null: it does not say.
  bool can_resume() const;
  Json model() const;
  /// Goes on where the newest whole checkpoint was, all ranks from the same, and says so. Its metadata; empty: there was none to resume.
  Json resume(st_trainer* trainer);

  /// After this step, by the options or by a SIGUSR1 to this rank.
  bool is_due(int64_t step);
  /// In the background; waits for the one before. What went wrong, with this one or the one before, is told on stderr, and the run goes on.
  void save(st_trainer* trainer, int64_t step, const Json& metadata);
  /// Returns when it is on the disk, unless that step is there. Throws Failure, where rank 0 saves alone only there.
  void save_last(st_trainer* trainer, int64_t step, const Json& metadata);
  /// Of the newest that was saved or resumed; -1: none.
  int64_t saved_step() const { return saved_step_; }

 private:
  void open();
  bool is_together(st_trainer* trainer) const;
  st_checkpoint* handle();
  void begin_save(st_trainer* trainer, int64_t step, const Json& metadata);
  void hear_of_last_save();
  void tell_unsaved() const;
  Json newest_manifest() const;
  Json batch_keys(int64_t ranks) const;
  Json resume_newest(st_trainer* trainer);

  st_context* context_;
  CheckpointOptions options_;
  const RunRanks& ranks_;
  Checkpoint checkpoint_;              // of ranks other than 0: read_only, made when it is needed
  std::vector<std::string> readable_;  // names, newest first
  Pending pending_;                    // the save that was begun last; null: none, or it was heard of
  int64_t saved_step_ = -1;
  double saved_at_;  // seconds; when the last one began
};

}  // namespace cli
