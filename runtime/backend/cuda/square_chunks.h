// How the squares of fp32 numbers are summed (float_squares.h): for kernels, and for what they need of memory.
#pragma once

#include <cstdint>

namespace st::cuda {

constexpr int64_t kSquareChunk = 8192;  // elements of one sum

constexpr int64_t square_chunks(int64_t elements) { return (elements + kSquareChunk - 1) / kSquareChunk; }

}  // namespace st::cuda
