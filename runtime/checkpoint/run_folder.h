// A run's folder: its checkpoints, which of them is the newest, what a killed save left, and who may write there.
//   latest                 names the newest, checksummed
//   lock                   held by the process that saves here
//   step-00000120/         a checkpoint: committed when it has a manifest.json, a leftover of a killed save when not
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_access.h"
#include "checkpoint/checkpoint_reader.h"

namespace st {

/// A committed checkpoint, or one whose manifest cannot be read.
struct CheckpointEntry {
  std::string name;
  int64_t sequence = -1, step = -1;  // -1: not known
  std::string problem;               // why its manifest is no good; empty: it is good (its data were not looked at)
};

class RunFolder {
 public:
  /// The folder may not be there yet: it then holds nothing.
  explicit RunFolder(std::string path);

  const std::string& path() const { return path_; }
  /// Newest first: by sequence, those with a problem where their name's step puts them. A folder whose manifest names another one is a
  /// copy, and so a problem.
  std::vector<CheckpointEntry> list() const;
  /// "step-00000120", or its path; throws not_found with the nearest. "" or "latest": the newest committed one.
  std::string path_of(std::string_view name) const;
  /// What a killed save or removal left: folders without a manifest, temporary files. Not of others: by names that only we make.
  std::vector<std::string> leftovers() const;
  /// What `latest` says; none: it is not there, or its checksum is wrong.
  std::optional<std::string> latest() const;

 private:
  std::string path_;
};

/// The one writer of a run's folder. Makes the folder, takes its lock and removes leftovers.
class RunFolderWriter {
 public:
  /// Throws busy, naming the process and host that hold it; io where it cannot be written.
  explicit RunFolderWriter(std::string path);

  const RunFolder& folder() const { return folder_; }
  /// Makes the folder of a new checkpoint, empty; its name: "step-00000120", or "step-00000120.2" where that one is committed already.
  std::string begin(int64_t step);
  int64_t next_sequence() { return ++sequence_; }
  /// Moves `latest` to a committed checkpoint. Its manifest's text decides what it says.
  void set_latest(const std::string& name);
  /// Removes what there is of a save that failed; never throws.
  void discard(const std::string& name) noexcept;
  /// Removes a committed one, its manifest first, so that a kill in between leaves a leftover. False: somebody reads it.
  bool remove(const std::string& name);

 private:
  RunFolder folder_;
  std::optional<os::FileHold> lock_;
  int64_t sequence_ = 0;
};

/// The newest checkpoint of a folder whose data are whole, opened; null: the folder holds none at all. What was passed over, and why, is
/// added to `skipped`: "step-00000120: <problem>". Throws corrupt, with the reasons, when there are some and none is valid. `verify` false:
/// manifest and headers decide, and the reading finds the rest.
std::optional<CheckpointReader> open_newest_valid(const RunFolder& folder, Workers& workers, std::vector<std::string>& skipped,
                                                  bool verify = true);

}  // namespace st
