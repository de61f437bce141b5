// Copies of optimizer state, parameters and gradients between the host's memory and the device's, on a stream of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "exec/planned_calls.h"
#include "exec/storage.h"
#include "plan/plan.h"

namespace st {

/// Runs the copies of a plan (MemoryLayout::windows), each after what the computing stream was given before it. That stream waits for a
/// window before the nodes that use it, and for the last one that is written at the end of a section; after an error, and after a section
/// that was left because the rank has no rows, call finish() too.
class StateCopies {
 public:
  /// The arenas of both are there. Borrows `storage` and `computing`.
  StateCopies(const Plan& plan, const PlannedCalls& calls, const Storage& storage, Stream& computing);

  void run(const Instruction& at);
  /// The host waits. Throws what a copy failed with.
  void finish() { copying_->finish(); }

 private:
  struct OneCopy {
    Address staged;
    std::byte* home = nullptr;
    int64_t bytes = 0;
    bool is_written = false;
  };
  struct Window {
    std::vector<OneCopy> copies;
    std::unique_ptr<Event> is_copied;  // the last copy of the window
  };

  Stream& computing_;
  const std::unique_ptr<Event> is_issued_;
  std::vector<Window> windows_;
  const std::unique_ptr<Stream> copying_;  // first to end: its work uses the others
};

}  // namespace st
