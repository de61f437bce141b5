// How long reductions are cut: into pieces with a partial result each, by the shape only. For kernels, and for what they need of memory.
#pragma once

#include <algorithm>
#include <cstdint>

namespace st::cuda {

constexpr int64_t kPieceOfRow = 16384;  // elements
constexpr int64_t kPieceOfColumn = 64;  // rows that are added to a piece of a column

constexpr int64_t pieces_of(int64_t size, int64_t piece) { return std::max<int64_t>(1, (size + piece - 1) / piece); }

}  // namespace st::cuda
