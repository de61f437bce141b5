#include "parts/drawn_operands.h"

#include <cmath>
#include <cstring>

#include "base/dtype.h"
#include "base/float16.h"

namespace st {
namespace {

enum Part : size_t { kA, kB, kC, kBias, kKept };

int64_t extent_of(int64_t rows, int64_t columns, const MatrixStrides& at, int64_t batch, int64_t step) {
  if (rows == 0 || columns == 0 || batch == 0) return 0;
  return (rows - 1) * at.row + (columns - 1) * at.column + (batch - 1) * step + 1;
}

std::array<int64_t, 5> sizes_of(const GemmProblem& p, bool compares) {
  const int64_t c = extent_of(p.m, p.n, p.c, p.batch, p.c_batch) * bytes_of(p.c_type);
  return {extent_of(p.m, p.k, p.a, p.batch, p.a_batch) * bytes_of(p.a_type),
          extent_of(p.k, p.n, p.b, p.batch, p.b_batch) * bytes_of(p.b_type), c, p.bias ? p.n * bytes_of(p.c_type) : 0, compares ? c : 0};
}

void fill(Memory& memory, DType type, uint64_t seed, Workers& workers) {
  constexpr int64_t kGrain = 1 << 16;
  const int64_t elements = memory.size() / bytes_of(type);
  workers.run_range(elements, kGrain, [&](int64_t begin, int64_t end) {
    uint64_t state = (seed * 0x9E3779B97F4A7C15 + static_cast<uint64_t>(begin)) | 1;
    for (int64_t i = begin; i < end; ++i) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      const float value = static_cast<float>(state >> 40) * 0x1p-23F - 1.0F;
      if (type == DType::f32) reinterpret_cast<float*>(memory.data())[i] = value;
      if (type == DType::bf16) reinterpret_cast<uint16_t*>(memory.data())[i] = bf16_of(value);
      if (type == DType::f16) reinterpret_cast<uint16_t*>(memory.data())[i] = f16_of(value);
    }
  });
}

}  // namespace

int64_t DrawnOperands::bytes_for(const GemmProblem& problem, bool compares) {
  int64_t sum = 0;
  for (const int64_t bytes : sizes_of(problem, compares)) sum += bytes;
  return sum;
}

DrawnOperands::DrawnOperands(const GemmProblem& problem, bool compares, const std::shared_ptr<MemorySource>& memory) : problem_(problem) {
  const auto bytes = sizes_of(problem, compares);
  for (size_t i = 0; i < bytes.size(); ++i) memory_[i] = Memory(bytes[i], memory, MemoryRole::other);
}

void DrawnOperands::draw(uint64_t seed, Workers& workers) {
  fill(memory_[kA], problem_.a_type, seed, workers);
  fill(memory_[kB], problem_.b_type, seed + 1, workers);
  if (problem_.bias) fill(memory_[kBias], problem_.c_type, seed + 2, workers);
}

GemmOperands DrawnOperands::get() const {
  return {memory_[kA].data(), memory_[kB].data(), memory_[kC].data(), problem_.bias ? memory_[kBias].data() : nullptr};
}

void DrawnOperands::forget_c() { std::memset(memory_[kC].data(), 0xFF, static_cast<size_t>(memory_[kC].size())); }  // NaN

void DrawnOperands::keep_c() { std::memcpy(memory_[kKept].data(), memory_[kC].data(), static_cast<size_t>(memory_[kC].size())); }

/// k products of at most 1, each sum rounded k times: far above what any order of sums does, far below a term that is missing or has
/// fewer bits.
bool DrawnOperands::is_as_kept() const {
  const float most = 0x1p-20F * static_cast<float>(problem_.k + 8);
  const auto *now = reinterpret_cast<const float*>(memory_[kC].data()), *kept = reinterpret_cast<const float*>(memory_[kKept].data());
  for (int64_t i = 0; i < memory_[kC].size() / bytes_of(DType::f32); ++i) {
    const bool same = std::isnan(kept[i]) ? std::isnan(now[i]) : std::abs(now[i] - kept[i]) <= most;
    if (!same) return false;
  }
  return true;
}

}  // namespace st
