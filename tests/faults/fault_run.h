// A run's folder in one of the test's own, saved to as a trainer does, and what is left of it.
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
  /// Waits for it; its error.
  std::optional<Error> save(CheckpointManager& manager, int64_t step);
  /// Of all that is there, each of them read and compared: "30 20".
  std::string steps() { return steps_of(path_, workers_); }

  std::filesystem::path scratch_;
  std::string path_;
  Workers workers_{2};
};

/// Calls `body` in a forked child, which may change what it is and what it sees, and returns what it returns: "" is fine, and "skipped:
/// why".
std::string in_child(const std::function<std::string()>& body);

/// A child that does something and then stays until it is killed.
class StayingChild {
 public:
  /// Returns when `body` has; what that returns is left alone while the child lives.
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
