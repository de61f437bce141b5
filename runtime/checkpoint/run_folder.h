// A run's folder: its checkpoints, which of them is the newest, what a killed save left, and who may write there.
//   latest                  names the newest, checksummed: for people and scripts; ours look at the manifests
//   lock                    held by the process that saves here, and names it
//   step-00000120/          a checkpoint. A second one of that step, after a rollback, is step-00000120.2
//   step-00000130.part/     a save under way; a checkpoint once it has been renamed
//   step-00000090.gone/     a checkpoint that is being removed
//   ranks-*                 of ranks that save together (shared_save.h)
// The last three are what a kill leaves. Nothing else is ever taken for a leftover: a checkpoint whose manifest got lost still has its
// weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/os/file_access.h"
#include "checkpoint/manifest.h"

namespace st {

/// A checkpoint, or what has the name of one.
struct CheckpointEntry {
  std::string name;
  int64_t step = -1;      // the manifest's; the name's where that is no good
  int64_t sequence = -1;  // -1: not known
  std::string problem;    // why its manifest is no good; empty: it is good (its data were not looked at)
};

/// What `latest` says.
struct LatestCheckpoint {
  std::string name;
  int64_t sequence = 0;
};
/// None: its checksum is wrong, or it is another file.
std::optional<LatestCheckpoint> parse_latest(std::string_view text);

class RunFolder {
 public:
  /// The folder may not be there yet: it then holds nothing.
  explicit RunFolder(std::string path);

  const std::string& path() const { return path_; }
  std::string path_to(std::string_view name) const;  // of a file or a folder in it
  /// Newest first: by sequence, those with a problem where their name's step puts them. A folder whose manifest names another one is a
  /// copy, and so a problem.
  std::vector<CheckpointEntry> list() const;
  /// Of one in it. Throws corrupt or not_found with the reason.
  Manifest manifest_of(std::string_view name) const;
  /// Of "step-00000120", its path; throws not_found with the nearest. "" or "latest": of the newest whose manifest is good.
  std::string path_of(std::string_view name) const;
  /// What a killed save or removal left; beside a process that saves, also what that one is at.
  std::vector<std::string> leftovers() const;
  /// None: the file is not there, or is not as it was written.
  std::optional<LatestCheckpoint> latest() const;

 private:
  std::string path_;
};

/// The one writer of a run's folder. Makes the folder, takes its lock and removes leftovers. All of it throws io with path and reason.
class RunFolderWriter {
 public:
  /// Throws busy, naming the process and host that hold it; io where it cannot be written.
  explicit RunFolderWriter(std::string path);

  const RunFolder& folder() const { return folder_; }
  /// Makes the folder of a new checkpoint, empty, and the run's folder where someone has removed it (busy: another process has it now). Its
  /// name, once it is committed: "step-00000120", or "step-00000120.2" where there is one of that name.
  std::string begin(int64_t step);
  /// Where its files go until then.
  std::string part_path(std::string_view name) const;
  int64_t next_sequence() { return ++sequence_; }
  /// Behind write_checkpoint(): now it is one. After an error it is none, or one that list() finds.
  void commit(const std::string& name);
  /// Moves `latest` to a committed checkpoint.
  void set_latest(const std::string& name, int64_t sequence);
  /// Removes what there is of a save that failed; never throws.
  void discard(const std::string& name) noexcept;
  /// Removes a committed one, so that a kill in between leaves a leftover; fine where it is not there. False: somebody reads it.
  bool remove(const std::string& name);
  /// What a killed process left, and what discard() and remove() could not do on a disk that said no. Between saves.
  void remove_leftovers();

 private:
  void take_lock();
  bool has_lock() const;

  RunFolder folder_;
  std::optional<os::FileHold> lock_;
  std::string lock_text_;  // what we wrote into it
  int64_t sequence_ = 0;
};

}  // namespace st
