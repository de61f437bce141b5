// Saves into a run's folder: takes a snapshot while the caller waits, writes it in the background, then applies retention.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/memory_source.h"
#include "base/pending.h"
#include "base/workers.h"
#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/retention.h"
#include "checkpoint/run_folder.h"
#include "checkpoint/save_destination.h"
#include "checkpoint/shared_save.h"
#include "checkpoint/snapshot.h"

namespace st {

struct CheckpointContent {
  int64_t step = 0;
  std::vector<SnapshotTensor> tensors;
  std::string training = "{}", recipe = "{}";  // JSON objects
  Metadata metadata;
  std::shared_ptr<const SharedSave> shared = {};  // if ranks save together: `tensors` are then this rank's ranges, in order
};

struct ManagerOptions {
  Retention retention;
  std::string best;  // the metric's key: a number in metadata or the training object; "": none
  WriteOptions write;
  int64_t queue = 0;                                       // saves that may wait while another is written, each with its own snapshot
  std::function<void(int64_t bytes)> require_memory = {};  // as Snapshot's; empty: no check
};

struct SaveProgress {
  int64_t bytes_done = 0, bytes_all = 0;  // of the save being written; 0 of 0 if there is none
  int64_t waiting = 0;                    // queued saves
  int64_t saved = 0, failed = 0;          // since this manager was made
  double blocked_seconds = 0;             // how long the last save blocked its caller
  double write_seconds = 0;               // duration of the last completed write
};

/// Safe to call from several threads. Saves are made one after the other; queries do not wait for them.
class CheckpointManager {
 public:
  using Place = SaveDestination::Place;
  /// Allocates snapshots from `memory` (role other) and keeps them from save to save. Throws as RunFolderWriter.
  CheckpointManager(std::string folder, ManagerOptions options, std::shared_ptr<MemorySource> memory, Logger log,
                    Place place = Place::of_folder);
  /// Waits for the running saves, which from now on ignore the cap on bytes per second.
  ~CheckpointManager();
  CheckpointManager(const CheckpointManager&) = delete;
  CheckpointManager& operator=(const CheckpointManager&) = delete;

  const RunFolder& folder() const;

  /// Copies the tensors on `workers` and returns; the files are written in the background. When all ranks of a group save together, all
  /// call it, a failure on one fails on all, and the Pending is done once rank 0 has committed.
  /// - If `queue` saves are already waiting, first waits for the oldest; throws cancelled a few milliseconds after `is_cancelled` (empty:
  ///   never) returns true.
  /// - Throws out_of_memory if there is no room for a snapshot; save_now() needs none.
  /// - The Pending throws the disk's error (path, offset, reason). Then the older checkpoints are unchanged, and this one is removed.
  std::shared_ptr<Pending> save(const CheckpointContent& content, Workers& workers, const std::function<bool()>& is_cancelled = {});
  /// Waits for the running saves, then writes and commits before it returns. Copies, where it must, through a window of a few MB. Throws as
  /// save() and its Pending; `is_cancelled` also ends the writing.
  void save_now(const CheckpointContent& content, Workers& workers, const std::function<bool()>& is_cancelled = {});

  /// Allocates the snapshots for such a content in advance, so that the first save is as fast as later ones. Throws as save().
  void prepare(const CheckpointContent& content, Workers& workers);
  /// Frees the snapshots that no save uses. From any thread at any time.
  void trim();

  /// Returns and clears the first unreported error; nullopt if there is none since the last call. Unreported are errors of saves whose
  /// Pending was dropped without a wait, and of the work after a commit (`latest`, removing older checkpoints).
  std::optional<Error> take_error();
  /// Waits until no save is running or queued, at most `milliseconds` (negative: forever); false: some still are.
  bool wait(int64_t milliseconds);
  SaveProgress progress() const;
  /// Step of the newest checkpoint that this manager has committed; -1: none.
  int64_t saved_step() const;
  /// The run goes on from a checkpoint that was in the folder when this manager was made: from now on retention counts those, too. Until
  /// then they are another run's.
  void adopt_earlier();
  /// Marks a checkpoint that a reader found corrupt: retention no longer counts it.
  void mark_corrupt(const std::string& name);

 private:
  struct State;
  class FolderHold;
  class SnapshotLoan;
  struct Job;

  std::unique_ptr<State> state_;
};

}  // namespace st
