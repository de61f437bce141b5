// The sums of backend/gradient_norm_order.h: 16 double lanes over blocks of 1024 elements, a tree over the blocks of a tensor, tensors in
// order. Blocks are summed in parallel into the workspace; the trees are short. Squares of f32 are exact in double, so vectors and scalars
// give the same bits here, on every instruction set.
#include "backend/gradient_norm_order.h"

#include <cmath>

#include "backend/cpu/convert.h"
#include "backend/cpu/kernels.h"

namespace st::cpu::ST_ISA {
namespace {

namespace order = gradient_norm_order;

using SumLanes = std::array<double, order::kLanes>;

/// lanes += squares of the 16 elements at x.
template <class T>
void add_squares(SumLanes& lanes, const T* x) {
  for (size_t i = 0; i < lanes.size(); ++i) {
    const auto g = static_cast<double>(widen(x[i]));
    lanes[i] += g * g;
  }
}

#ifdef __AVX512F__
template <>
void add_squares(SumLanes& lanes, const float* x) {
  for (size_t i = 0; i < lanes.size(); i += 8) {
    const __m512d g = _mm512_cvtps_pd(_mm256_loadu_ps(x + i));
    _mm512_storeu_pd(&lanes[i], _mm512_fmadd_pd(g, g, _mm512_loadu_pd(&lanes[i])));
  }
}
#elif defined(__AVX2__)
template <>
void add_squares(SumLanes& lanes, const float* x) {
  for (size_t i = 0; i < lanes.size(); i += 4) {
    const __m256d g = _mm256_cvtps_pd(_mm_loadu_ps(x + i));
    _mm256_storeu_pd(&lanes[i], _mm256_fmadd_pd(g, g, _mm256_loadu_pd(&lanes[i])));
  }
}
#endif

template <class T>
double sum_of_block(const T* x, int64_t n) {
  SumLanes lanes{};
  int64_t i = 0;
  for (; i + order::kLanes <= n; i += order::kLanes) add_squares(lanes, x + i);
  for (int64_t lane = 0; i + lane < n; ++lane) {
    const auto g = static_cast<double>(widen(x[i + lane]));
    lanes[static_cast<size_t>(lane)] += g * g;
  }
  return order::sum_of_lanes(lanes);
}

template <class T>
bool all_finite(const T* x, int64_t n) {
  using C = Compute<T>;
  const Batch<C> largest(std::numeric_limits<C>::max());
  xsimd::batch_bool<C> finite = largest == largest;
  each_vector<C>(n, [&](int64_t i, int64_t count) { finite = finite & (xsimd::abs(load_part(x + i, count)) <= largest); });
  return xsimd::all(finite);
}

struct Scratch {
  double* sums;       // of each block
  uint8_t* infinite;  // of each block: something is not finite
};

template <class T>
void sum_blocks_of(const Operand& gradient, Workers& workers, const Scratch& scratch) {
  const T* const x = gradient.as<const T>();
  const int64_t n = gradient.elements();
  workers.run_range(order::blocks_of(n), kGrain / order::kBlock, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t from = block * order::kBlock, count = std::min(order::kBlock, n - from);
      scratch.sums[block] = sum_of_block(x + from, count);
      scratch.infinite[block] = all_finite(x + from, count) ? 0 : 1;
    }
  });
}

int64_t most_blocks(int64_t blocks, int64_t elements) { return std::max(blocks, order::blocks_of(elements)); }

void run_gradient_norm(const Call& call) {
  int64_t capacity = 0;
  for (const Operand& gradient : call.in) capacity = most_blocks(capacity, gradient.elements());
  const Scratch scratch{reinterpret_cast<double*>(call.workspace.data()),
                        reinterpret_cast<uint8_t*>(call.workspace.data()) + capacity * static_cast<int64_t>(sizeof(double))};
  double squares = 0;
  bool finite = true;
  for (const Operand& gradient : call.in) {
    with_float("gradient_norm", gradient.dtype, [&](auto t) { sum_blocks_of<decltype(t)>(gradient, *call.workers, scratch); });
    order::BlockTree tree;
    for (int64_t block = 0; block < order::blocks_of(gradient.elements()); ++block) {
      tree.add(scratch.sums[block]);
      finite = finite && scratch.infinite[block] == 0;
    }
    squares += tree.sum();
  }
  *call.out[0].as<double>() = std::sqrt(squares);
  *call.out[1].as<uint8_t>() = finite ? 1 : 0;
}

int64_t workspace_of_gradient_norm(std::span<const Type> in, std::span<const Type>, const Attrs&, int) {
  int64_t capacity = 0;
  for (const Type& gradient : in) capacity = most_blocks(capacity, gradient.shape.elements());
  return capacity * static_cast<int64_t>(sizeof(double) + 1);
}

}  // namespace

const Kernel kernel_gradient_norm = {run_gradient_norm, workspace_of_gradient_norm};

}  // namespace st::cpu::ST_ISA
