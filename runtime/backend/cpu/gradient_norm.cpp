// The sums of backend/gradient_norm_order.h: 16 double lanes over blocks of 1024 elements, a tree over the blocks of a tensor, tensors in
// order. Runs of blocks are summed in parallel into the workspace; the trees above them are short. Squares of f32 are exact in double, so
// vectors and scalars give the same bits on every instruction set.
#include "backend/gradient_norm_order.h"

#include <cmath>

#include "backend/cpu/convert.h"
#include "backend/cpu/kernels.h"

namespace st::cpu::ST_ISA {
namespace {

namespace order = gradient_norm_order;

/// Sixteen lanes of squares, kept in registers through a block if the set has vectors of doubles.
#if defined(__AVX512F__)
struct SumLanes {
  __m512d low = _mm512_setzero_pd(), high = low;

  template <class T>
  void add(const T* x) {
    const __m512 g = load(x);
    const __m512d a = _mm512_cvtps_pd(_mm512_castps512_ps256(g)), b = _mm512_cvtps_pd(_mm512_extractf32x8_ps(g, 1));
    low = _mm512_fmadd_pd(a, a, low);
    high = _mm512_fmadd_pd(b, b, high);
  }
  void store_to(double* lanes) const {
    _mm512_storeu_pd(lanes, low);
    _mm512_storeu_pd(lanes + 8, high);
  }
};
#elif defined(__AVX2__)
struct SumLanes {
  __m256d quarter[4] = {};

  template <class T>
  void add(const T* x) {
    const __m256 g = load(x), h = load(x + 8);
    add<0>(_mm256_castps256_ps128(g));
    add<1>(_mm256_extractf128_ps(g, 1));
    add<2>(_mm256_castps256_ps128(h));
    add<3>(_mm256_extractf128_ps(h, 1));
  }
  void store_to(double* lanes) const {
    for (size_t i = 0; i < 4; ++i) _mm256_storeu_pd(lanes + 4 * i, quarter[i]);
  }

 private:
  template <size_t kQuarter>
  void add(__m128 x) {
    const __m256d g = _mm256_cvtps_pd(x);
    quarter[kQuarter] = _mm256_fmadd_pd(g, g, quarter[kQuarter]);
  }
};
#endif

// The hardware's prefetcher stops at the end of a page, which is one block of f32.
constexpr int64_t kBlockAhead = order::kBlock;

/// lanes[i] += the square of x[i], i < n
template <class T>
void add_squares(std::array<double, order::kLanes>& lanes, const T* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const auto g = static_cast<double>(widen(x[i]));
    lanes[static_cast<size_t>(i)] += g * g;
  }
}

template <class T>
double sum_of_block(const T* x, int64_t n) {
  std::array<double, order::kLanes> lanes{};
  int64_t i = 0;
#ifdef __AVX2__
  if constexpr (!std::is_same_v<T, double>) {
    SumLanes sums;
    for (; i + order::kLanes <= n; i += order::kLanes) {
      __builtin_prefetch(x + i + kBlockAhead);
      sums.add(x + i);
    }
    sums.store_to(lanes.data());
  }
#endif
  for (; i < n; i += order::kLanes) add_squares(lanes, x + i, std::min(order::kLanes, n - i));
  return order::sum_of_lanes(lanes);
}

/// Squares of f32 and of 16-bit floats cannot overflow in double, so their sum is finite if all of them are.
template <class T>
bool all_finite(const T* x, int64_t n, double sum) {
  if constexpr (!std::is_same_v<T, double>) return std::isfinite(sum);
  return std::all_of(x, x + n, [](T g) { return std::isfinite(widen(g)); });
}

constexpr int64_t kRun = kGrain / order::kBlock;  // blocks per task: an aligned power of two, so that their sum is a subtree
static_assert(kRun * order::kBlock == kGrain);    // tasks_of() counts runs

struct Scratch {
  double* sums;       // of each run
  uint8_t* infinite;  // of each run: whether an element is not finite
};

template <class T>
void sum_runs_of(const Operand& gradient, Workers& workers, const Scratch& scratch) {
  const T* const x = as<const T>(gradient);
  const int64_t n = gradient.elements();
  workers.run_range(order::blocks_of(n), kRun, [&](int64_t begin, int64_t end) {
    order::BlockTree tree;
    bool finite = true;
    for (int64_t block = begin; block < end; ++block) {
      const int64_t from = block * order::kBlock, count = std::min(order::kBlock, n - from);
      const double sum = sum_of_block(x + from, count);
      finite = finite && all_finite(x + from, count, sum);
      tree.add(sum);
    }
    scratch.sums[begin / kRun] = tree.sum();
    scratch.infinite[begin / kRun] = finite ? 0 : 1;
  });
}

void run_gradient_norm(const Call& call) {
  int64_t capacity = 0;
  for (const Operand& gradient : call.in) capacity = std::max(capacity, tasks_of(gradient.elements()));
  const Scratch scratch{reinterpret_cast<double*>(pointer_to(call.workspace)),
                        reinterpret_cast<uint8_t*>(pointer_to(call.workspace)) + capacity * static_cast<int64_t>(sizeof(double))};
  double squares = 0;
  bool finite = true;
  for (const Operand& gradient : call.in) {
    with_float("gradient_norm", gradient.dtype, [&](auto t) { sum_runs_of<decltype(t)>(gradient, *call.workers, scratch); });
    order::BlockTree tree;  // over the runs; the last one may be shorter and is then the smallest subtree
    for (int64_t run = 0; run < tasks_of(gradient.elements()); ++run) {
      tree.add(scratch.sums[run]);
      finite = finite && scratch.infinite[run] == 0;
    }
    squares += tree.sum();
  }
  *as<double>(call.out[0]) = std::sqrt(squares);
  *as<uint8_t>(call.out[1]) = finite ? 1 : 0;
}

void run_gradient_squares(const Call& call) {
  double* sums = as<double>(call.out[0]);
  for (const Operand& gradient : call.in) {
    const int64_t n = gradient.elements(), blocks = order::blocks_of(n);
    with_float("gradient_squares", gradient.dtype, [&](auto t) {
      const auto* const x = as<const decltype(t)>(gradient);
      call.workers->run_range(blocks, kRun, [=](int64_t begin, int64_t end) {
        for (int64_t block = begin; block < end; ++block)
          sums[block] = sum_of_block(x + block * order::kBlock, std::min(order::kBlock, n - block * order::kBlock));
      });
    });
    sums += blocks;
  }
}

void run_norm_of_squares(const Call& call) {
  const order::Norm norm = order::norm_of_squares(as<const double>(call.in[0]), call.attrs->ints("tensors"));
  *as<double>(call.out[0]) = norm.value;
  *as<uint8_t>(call.out[1]) = norm.finite ? 1 : 0;
}

void run_tensor_squares(const Call& call) {
  order::tensor_squares(as<const double>(call.in[0]), call.attrs->ints("tensors"), as<double>(call.out[0]));
}

}  // namespace

const Kernel kernel_tensor_squares = {run_tensor_squares};
const Kernel kernel_gradient_squares = {run_gradient_squares};
const Kernel kernel_norm_of_squares = {run_norm_of_squares};
const Kernel kernel_gradient_norm = {run_gradient_norm};

}  // namespace st::cpu::ST_ISA
