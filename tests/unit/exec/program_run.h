// Runs a program on the reference backend, for tests of a pass's effect on values.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backend/kernel_side.h"
#include "exec/executor.h"

namespace st {

/// Plans `program` without further passes, with the reference kernels' workspace.
Plan plan_for_reference(Program program, const StepOrder& order);
inline Plan plan_for_reference(const Program& program, int64_t micro_batches = 1) {
  return plan_for_reference(program, in_turn(program, micro_batches));
}

class ProgramRun {
 public:
  /// Initialises parameters with seed 7.
  ProgramRun(Program program, const StepOrder& order);
  explicit ProgramRun(const Program& program, int64_t micro_batches = 1) : ProgramRun(program, in_turn(program, micro_batches)) {}

  const Program& program() const { return executor_.plan().program; }
  Executor& executor() { return executor_; }
  void bind(const std::string& input, const void* data) { executor_.bind(slot(input), data); }
  template <class T>
  T* data(const std::string& name) const {
    return as<T>(executor_.slot(slot(name)));
  }
  std::vector<float> floats(const std::string& name) const;  // of 16 bits widened
  SlotId slot(const std::string& name) const;                // fails if it does not exist
  void run(const std::function<void(int64_t)>& before = {}) { executor_.run(before); }

 private:
  std::unique_ptr<Backend> backend_ = make_reference_backend();
  Storage storage_{*backend_};
  Workers workers_{1};
  Executor executor_;
};

/// Numbers between -1 and 1 that depend only on the seed.
std::vector<float> some_floats(int64_t count, uint64_t seed);

}  // namespace st
