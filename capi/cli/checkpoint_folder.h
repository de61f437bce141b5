// A run's folder or one checkpoint, opened read-only: it takes no lock, so another process may save meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "handle.h"
#include "options.h"

namespace cli {

/// Checks the status of a checkpoint call. Damaged files and disk errors exit with 3; every other error, a folder that another process
/// saves to included, exits with 2.
void check_folder(st_status status);

class CheckpointFolder {
 public:
  explicit CheckpointFolder(const std::string& path);

  const std::string& path() const { return path_; }
  st_checkpoint* handle() const { return checkpoint_.get(); }

  struct Entry {
    std::string name, problem;  // why its manifest is invalid; empty if it is valid
    int64_t step = -1;
  };
  /// Newest first. Throws Failure(kRefused) if there are none.
  std::vector<Entry> entries() const;
  /// The newest checkpoint for which `call` returns ST_OK. Skips those whose files are damaged or unreadable, with the reason on stderr.
  /// Throws Failure for any other error, and if no checkpoint is left.
  std::string newest(const std::function<st_status(const char* name)>& call) const;
  /// The name to pass to the C ABI for an entry.
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
