// The state that `bench checkpoint` saves (host arrays in the size and number of a model's weights and moments) and its measurements.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "handle.h"

namespace cli {

class SavedState {
 public:
  /// `bytes` of random floats in tensors of 1 and 16 MiB, saved under `folder` by a manager that keeps one checkpoint.
  SavedState(const Context& context, int64_t bytes, const std::filesystem::path& folder);

  int64_t bytes() const { return bytes_; }

  // Each returns seconds.
  double copy();               // one memcpy of the state
  double block();              // that a background save blocks its caller; waits for the save afterwards
  double save();               // into files, with fsync
  double write_plain() const;  // the same bytes into one file, with one fsync
  // Loads the newest checkpoint into host arrays and checks that they are equal. overwrite: see st_read_options.
  double load(bool overwrite);
  double read_files() const;  // reads the newest checkpoint's files as cp would: into one reused buffer

  /// Saves in the background at this many bytes per second; poll the result.
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
