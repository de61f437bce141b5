// The device of trainings: the simulated one, or ST_TEST_DEVICE=cuda, a GPU, by tests/gpu/run; whether it records kernels.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace st {

inline const char* const kDevice = std::getenv("ST_TEST_DEVICE") != nullptr ? std::getenv("ST_TEST_DEVICE") : "cuda-simulated";

/// While it exists, trainers record nothing.
class NoRecordings {
 public:
  NoRecordings() { setenv(kVariable, "1", 1); }
  ~NoRecordings() { before_ ? setenv(kVariable, before_->c_str(), 1) : unsetenv(kVariable); }
  NoRecordings(const NoRecordings&) = delete;
  NoRecordings& operator=(const NoRecordings&) = delete;

 private:
  static constexpr const char* kVariable = "SCALETRAIN_CUDA_SYNC";
  const std::optional<std::string> before_ =
      std::getenv(kVariable) == nullptr ? std::nullopt : std::optional<std::string>(std::getenv(kVariable));
};

}  // namespace st
