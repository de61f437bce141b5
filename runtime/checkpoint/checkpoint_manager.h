// Saves into a run's folder: a snapshot while the caller waits, the writing behind its back, retention after that.
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
#include "checkpoint/shared_save.h"
#include "checkpoint/snapshot.h"

namespace st {

struct CheckpointContent {
  int64_t step = 0;
  std::vector<SnapshotTensor> tensors;
  std::string training = "{}", recipe = "{}";  // JSON objects
  Metadata metadata;
  std::shared_ptr<const SharedSave> shared = {};  // of ranks that save together: `tensors` are this one's ranges, in order
};

struct ManagerOptions {
  Retention retention;
  std::string best;  // the metric's key: a number in metadata or the training object; "": none
  WriteOptions write;
  int64_t queue = 0;  // saves that may wait behind the one being written, each with a snapshot of its own
  std::function<void(int64_t bytes)> require_memory = {};  // as Snapshot's; empty: what there is will do
};

struct SaveProgress {
  int64_t bytes_done = 0, bytes_all = 0;  // of the save being written, 0 of 0 when none is
  int64_t waiting = 0;                    // saves behind it
  int64_t saved = 0, failed = 0;          // since this manager was made
  double blocked_seconds = 0;             // of the last save's caller
  double write_seconds = 0;               // of the last save that was written
};

/// Safe to call from several threads: saves are made one after the other, and whoever only asks does not wait for them.
class CheckpointManager {
 public:
  enum class Place { of_folder, beside /* another process has the folder: only saves that ranks make together, of which it commits */ };
  /// Snapshots are memory of `memory` (role other), kept from save to save. Throws as RunFolderWriter.
  CheckpointManager(std::string folder, ManagerOptions options, std::shared_ptr<MemorySource> memory, Logger log,
                    Place place = Place::of_folder);
  /// Waits for the saves that are under way, which now keep to no cap: nothing is left that they could be in the way of.
  ~CheckpointManager();
  CheckpointManager(const CheckpointManager&) = delete;
  CheckpointManager& operator=(const CheckpointManager&) = delete;

  const RunFolder& folder() const;

  /// Copies the tensors, on `workers`, and returns; the files are written meanwhile. Where `queue` saves wait already it waits for the
  /// oldest, and throws cancelled some milliseconds after `is_cancelled` (empty: never) says so. The pending one throws what the disk says
  /// (path, offset, reason); then the older checkpoints are as they were, and what there was of this one is gone. Throws out_of_memory
  /// where there is no room for a snapshot: then save_now() needs none. Of ranks that save together all call, and what fails on one fails
  /// on all; the pending one is done when rank 0 has committed.
  std::shared_ptr<Pending> save(const CheckpointContent& content, Workers& workers, const std::function<bool()>& is_cancelled = {});
  /// Returns when it is committed, behind those that are under way. Copies piece by piece, in a window of some MB, where it must copy.
  /// Throws as save() and its pending one; `is_cancelled` also ends the writing.
  void save_now(const CheckpointContent& content, Workers& workers, const std::function<bool()>& is_cancelled = {});

  /// Makes room for the snapshots of such a content, so that the first save is as quick as the others. Throws as save().
  void prepare(const CheckpointContent& content, Workers& workers);
  /// Gives back the snapshots that no save uses. From any thread at any time.
  void trim();

  /// Errors that nobody has been told of, the first one; none since the last call: empty. They are those of saves whose pending one nobody
  /// waited for and nobody holds any more, and of what comes behind a save that is committed (`latest`, removing older ones).
  std::optional<Error> take_error();
  /// Waits until nothing is under way, at most so long (below 0: as long as it takes); false: still under way.
  bool wait(int64_t milliseconds);
  SaveProgress progress() const;
  /// Of the newest one that this manager has committed; -1: none.
  int64_t saved_step() const;
  /// One that a reader found corrupt: it counts for nothing in retention.
  void mark_corrupt(const std::string& name);

 private:
  struct State;
  class Turn;
  class Lease;
  struct Job;

  std::unique_ptr<State> state_;
};

}  // namespace st
