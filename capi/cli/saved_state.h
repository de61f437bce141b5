// What `bench checkpoint` saves: a host's arrays, as large and as many as a model's weights and moments, and everything that is measured of
// them.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "handle.h"

namespace cli {

class SavedState {
 public:
  /// So many bytes of random floats in tensors of 1 and 16 MiB, saved below `folder` by a manager that keeps one checkpoint.
  SavedState(const Context& context, int64_t bytes, const std::filesystem::path& folder);

  int64_t bytes() const { return bytes_; }

  // Each: seconds.
  double copy();               // one memcpy of it
  double block();              // that a save in the background keeps its caller; waits for its end afterwards
  double save();               // into files, fsync and all
  double write_plain() const;  // the same bytes into one file, and an fsync
  // The newest into arrays of the host, which must then be equal; overwrite: as st_read_options has it.
  double load(bool overwrite);
  double read_files() const;  // of the newest, as cp reads them: into one buffer, again and again

  /// Saves in the background at so many bytes a second; poll its end.
  Pending flush(double bytes_per_second);

 private:
  std::vector<st_named_view> views(std::vector<float>& of) const;
  Checkpoint manager(const std::filesystem::path& folder, double bytes_per_second) const;

  const Context& context_;
  int64_t bytes_, step_ = 0;
  std::filesystem::path folder_;
  std::vector<std::string> names_;
  std::vector<int64_t> elements_;
  std::vector<float> values_, copy_;
  Checkpoint checkpoint_, slow_;
};

}  // namespace cli
