// A run's folder in a temporary folder: saves to it as a trainer does, and checks what is left.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "step_state.h"
#include "thrown_error.h"

namespace st {

class FaultRun : public testing::Test {
 protected:
  FaultRun();
  ~FaultRun() override;

  static ManagerOptions keep_last(int64_t n);
  CheckpointManager make(int64_t keep = 2) { return {path_, keep_last(keep), std::make_shared<MemorySource>(), {}}; }
  /// Saves and waits; returns the error.
  std::optional<Error> save(CheckpointManager& manager, int64_t step);
  /// Reads and compares all checkpoints in the folder; returns their steps, "30 20".
  std::string steps() { return steps_of(path_, workers_); }

  std::filesystem::path scratch_;
  std::string path_;
  Workers workers_{2};
};

/// Calls `body` in a forked child, which may change its user or its mounts, and returns its result: "" for success, "skipped: why", or what
/// is wrong.
std::string in_child(const std::function<std::string()>& body);

/// A child that runs `body` and then stays until it is killed.
class StayingChild {
 public:
  /// Returns when `body` has returned; the child keeps its result alive.
  explicit StayingChild(const std::function<std::shared_ptr<void>()>& body);
  ~StayingChild() { kill(); }
  StayingChild(const StayingChild&) = delete;
  StayingChild& operator=(const StayingChild&) = delete;
  /// SIGKILL.
  void kill();
  int64_t process() const { return process_; }

 private:
  int process_ = -1;
};

}  // namespace st
