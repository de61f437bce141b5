// The checkpoints of one run of `scaletrain train`: when to save, and where to resume.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "handle.h"
#include "options.h"
#include "run_ranks.h"

namespace cli {

struct CheckpointOptions {
  std::string folder;      // "": no checkpoints
  int64_t every = 0;       // steps; 0: not by steps
  double minutes = 0;      // 0: not by time
  int64_t keep = 3;        // the newest N; 0: all
  int64_t keep_every = 0;  // and multiples of it; 0: none
  int64_t keep_best = 0;   // and the N best by validation loss
  bool resume = false;
};

/// Rank 0 owns the folder and writes it; other ranks read the checkpoint that rank 0 has chosen. If the state is sharded (zero 1 or more),
/// all ranks save and resume together.
class RunCheckpoints {
 public:
  /// Opens the folder, and creates it if necessary. Refuses a folder with checkpoints unless the run resumes. Borrows context and ranks.
  RunCheckpoints(st_context* context, const CheckpointOptions& options, const RunRanks& ranks);

  /// Sets the recipe's seed and the keys that define the data stream to those of the newest checkpoint with a readable manifest. On a
  /// different number of ranks, sets its number of micro-batches. Throws Failure(kRefused) if a key that was given has another value;
  /// accumulate, which counts per rank, gives way.
  void keep_stream(st_recipe* recipe, const std::function<bool(const std::string& key)>& is_given) const;
  /// Whether there is a checkpoint to resume, agreed on all ranks; and the model of the newest one with a readable manifest, as ModelChoice
  /// takes it (null if it names none).
  bool can_resume() const;
  Json model() const;
  /// Resumes all ranks from the same newest whole checkpoint and reports it. Returns its metadata; empty if there was none.
  Json resume(st_trainer* trainer);

  /// Whether a save is due after this step, by the options or by a SIGUSR1 to this rank.
  bool is_due(int64_t step);
  /// Saves in the background; waits for the previous save first. Errors of either save are reported on stderr and the run continues.
  void save(st_trainer* trainer, int64_t step, const Json& metadata);
  /// Returns when the checkpoint is on disk; does nothing if that step is already saved. Throws Failure; if rank 0 saves alone, only there.
  void save_last(st_trainer* trainer, int64_t step, const Json& metadata);
  /// The newest step saved or resumed; -1: none.
  int64_t saved_step() const { return saved_step_; }
  /// Path of the newest checkpoint. Only on rank 0.
  std::string newest();

 private:
  void open();
  st_checkpoint* handle();
  decltype(&st_trainer_save) save_call(st_trainer* trainer) const;  // of all ranks, or of rank 0
  void begin_save(st_trainer* trainer, int64_t step, const Json& metadata);
  void check_last_save();
  void report_unsaved() const;
  Json newest_manifest() const;
  Json stream_keys(int64_t ranks) const;
  Json resume_newest(st_trainer* trainer);

  st_context* context_;
  CheckpointOptions options_;
  const RunRanks& ranks_;
  Checkpoint checkpoint_;              // on ranks other than 0: read_only, opened on first use
  std::vector<std::string> readable_;  // names, newest first
  Pending pending_;                    // the save begun last; null if none, or if its outcome was reported
  int64_t saved_step_ = -1;
  double saved_at_;  // seconds; start of the last save
};

}  // namespace cli
