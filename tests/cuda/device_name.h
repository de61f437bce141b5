// The device of trainings: the simulated one, or ST_TEST_DEVICE=cuda, a GPU, by tests/gpu/run; whether it records kernels.
#pragma once

#include <cstdlib>

namespace st {

inline const char* const kDevice = std::getenv("ST_TEST_DEVICE") != nullptr ? std::getenv("ST_TEST_DEVICE") : "cuda-simulated";

/// While it exists, trainers record nothing.
class NoRecordings {
 public:
  NoRecordings() { setenv("SCALETRAIN_CUDA_SYNC", "1", 1); }
  ~NoRecordings() { unsetenv("SCALETRAIN_CUDA_SYNC"); }
  NoRecordings(const NoRecordings&) = delete;
  NoRecordings& operator=(const NoRecordings&) = delete;
};

}  // namespace st
