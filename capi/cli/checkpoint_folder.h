// A run's folder or one checkpoint, open to be read: beside a process that saves, without its lock.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "handle.h"
#include "options.h"

namespace cli {

/// Of a call about checkpoints. Files that are not whole, and a disk that fails, are nobody's request: 3. Everything else is, a folder that
/// another process saves to as well: 2.
void check_folder(st_status status);

class CheckpointFolder {
 public:
  explicit CheckpointFolder(const std::string& path);

  const std::string& path() const { return path_; }
  st_checkpoint* handle() const { return checkpoint_.get(); }

  struct Entry {
    std::string name, problem;  // why its manifest is no good; empty: it is good
    int64_t step = -1;
  };
  /// Newest first. Throws Failure(kRefused) where there is none.
  std::vector<Entry> entries() const;
  /// The newest for which `call` is ST_OK; those whose files are damaged or cannot be read are passed over, and stderr says why. Throws
  /// Failure: whatever else it is, and where there is no such one.
  std::string newest(const std::function<st_status(const char* name)>& call) const;
  /// What the calls take for an entry's name.
  const char* key(const std::string& name) const { return is_one_ ? nullptr : name.c_str(); }
  /// st_checkpoint_inspect's.
  Json manifest(const std::string& name) const;

 private:
  std::string path_;
  bool is_one_;  // not a run's folder
  Context context_;
  Checkpoint checkpoint_;
};

}  // namespace cli
