// The device of trainings: the simulated one, or ST_TEST_DEVICE=cuda, a GPU, by tests/gpu/run.
#pragma once

#include <cstdlib>

namespace st {

inline const char* const kDevice = std::getenv("ST_TEST_DEVICE") != nullptr ? std::getenv("ST_TEST_DEVICE") : "cuda-simulated";

}  // namespace st
