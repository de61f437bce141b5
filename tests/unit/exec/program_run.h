// Runs a program on the reference backend: for tests that ask what a pass did to the numbers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "exec/executor.h"

namespace st {

/// Plans `program` as it is, with the reference kernels' workspace.
Plan plan_for_reference(Program program, int64_t micro_batches = 1);

class ProgramRun {
 public:
  /// Parameters are made from their initializers and seed 7.
  explicit ProgramRun(Program program, int64_t micro_batches = 1);

  const Program& program() const { return executor_.plan().program; }
  Executor& executor() { return executor_; }
  void bind(const std::string& input, const void* data) { executor_.bind(slot(input), data); }
  template <class T>
  T* data(const std::string& name) const {
    return executor_.slot(slot(name)).as<T>();
  }
  std::vector<float> floats(const std::string& name) const;
  SlotId slot(const std::string& name) const;  // fails when it is not there
  void run(const std::function<void(int64_t)>& before = {}) { executor_.run(before); }

 private:
  std::unique_ptr<Backend> backend_ = make_reference_backend();
  Storage storage_{*backend_};
  Workers workers_{1};
  Executor executor_;
};

/// Some numbers between -1 and 1, the same for the same seed.
std::vector<float> some_floats(int64_t count, uint64_t seed);

}  // namespace st
