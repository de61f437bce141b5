// A run's folder: its checkpoints, the newest of them, leftovers of killed saves, and its lock.
//   latest                  names the newest, with a checksum; for people and scripts (the library reads the manifests)
//   lock                    held by the process that saves here, and names it
//   step-00000120/          a checkpoint; a second one of that step, after a rollback, is step-00000120.2
//   step-00000130.part/     a running save; renamed, it is a checkpoint
//   step-00000090.gone/     a checkpoint that is being removed
//   ranks-*                 files of ranks that save together (shared_save.h)
// A kill may leave the last three. Nothing else counts as a leftover: a checkpoint that lost its manifest still has its weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/os/file_access.h"
#include "checkpoint/manifest.h"

namespace st {

/// A folder with the name of a checkpoint.
struct CheckpointEntry {
  std::string name;
  int64_t step = -1;      // the manifest's, or the name's if the manifest is invalid
  int64_t sequence = -1;  // -1: unknown
  std::string problem;    // why the manifest is invalid; empty: it is valid (the data are not checked)
};

/// The content of `latest`.
struct LatestCheckpoint {
  std::string name;
  int64_t sequence = 0;
};
/// nullopt: the checksum is wrong, or the text is something else.
std::optional<LatestCheckpoint> parse_latest(std::string_view text);

class RunFolder {
 public:
  /// The folder need not exist; then it holds no checkpoints.
  explicit RunFolder(std::string path);

  const std::string& path() const { return path_; }
  std::string path_to(std::string_view name) const;  // path of a file or folder in it
  /// Newest first, by sequence; entries with a problem are placed by the step in their name. A folder whose manifest names another one is a
  /// copy and has a problem.
  std::vector<CheckpointEntry> list() const;
  /// The manifest of a checkpoint in it. Throws corrupt or not_found with the reason.
  Manifest manifest_of(std::string_view name) const;
  /// The path of a checkpoint such as "step-00000120"; "" or "latest": the newest with a valid manifest. Throws not_found, naming the
  /// nearest; corrupt if the newest is requested and no manifest is valid.
  std::string path_of(std::string_view name) const;
  /// Leftovers of killed saves and removals. While another process saves here, includes the save and removal it is working on.
  std::vector<std::string> leftovers() const;
  /// nullopt: the file does not exist or is not as it was written.
  std::optional<LatestCheckpoint> latest() const;

 private:
  std::string path_;
};

/// The only writer of a run's folder. Creates the folder, takes its lock and removes leftovers. All members throw io with path and reason.
class RunFolderWriter {
 public:
  /// Throws busy, naming the process and host that hold the lock; io if the folder cannot be written.
  explicit RunFolderWriter(std::string path);

  const RunFolder& folder() const { return folder_; }
  /// Creates the empty folder of a new checkpoint, and the run's folder if it was removed (throws busy if another process has it now).
  /// Returns the name that commit() will give it: "step-00000120", or "step-00000120.2" if that name is taken.
  std::string begin(int64_t step);
  /// The folder for its files until the commit.
  std::string part_path(std::string_view name) const;
  int64_t next_sequence() { return ++sequence_; }
  /// Called after write_checkpoint(): makes it a checkpoint. After an error it is either none, or one that list() finds.
  void commit(const std::string& name);
  /// Moves `latest` to a committed checkpoint.
  void set_latest(const std::string& name, int64_t sequence);
  /// Removes the files of a save that failed; never throws.
  void discard(const std::string& name) noexcept;
  /// Removes a committed checkpoint, if it exists; a kill during that leaves a leftover. False: a reader holds it.
  bool remove(const std::string& name);
  /// Removes leftovers of killed processes, and of discard() and remove() calls that failed on a disk error. Call it between saves.
  void remove_leftovers();

 private:
  void take_lock();
  bool has_lock() const;

  RunFolder folder_;
  std::optional<os::FileHold> lock_;
  std::string lock_text_;  // our text in the lock file
  int64_t sequence_ = 0;
};

}  // namespace st
