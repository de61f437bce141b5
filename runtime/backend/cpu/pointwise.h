// Elementwise kernels: an op's file contains only a functor on vectors. Inputs broadcast to the output; bf16 and f16 are computed in float;
// integers use the functor's static `whole` if it has one. Only the inner loop is compiled per functor and type; the walk and the tails are
// in pointwise_walk.cpp.
#pragma once

#include <utility>

#include "backend/cpu/convert.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/pointwise_walk.h"

namespace st::cpu::ST_ISA {

/// kMoves: bit k set when input k advances, else it stays.
template <unsigned kMoves, class T, class F, size_t N, size_t... I>
void run_moving(const F& f, const std::array<const T*, N>& from, T* out, int64_t n, std::index_sequence<I...>) {
  using B = Batch<Compute<T>>;
  const B still[] = {((kMoves >> I) & 1) != 0 ? B(0) : B(widen(from[I][0]))...};
  for (int64_t i = 0; i < n; i += kLanes<Compute<T>>) store(out + i, B(f((((kMoves >> I) & 1) != 0 ? load(from[I] + i) : still[I])...)));
}

/// A PointwiseRun on vectors of N inputs.
template <size_t N, class T, class F>
void run_vectors(const void* functor, const void* a, const void* b, unsigned moves, void* out, int64_t n) {
  constexpr auto indices = std::make_index_sequence<N>{};
  const F f = *static_cast<const F*>(functor);  // a copy: a store may alias what a reference points to
  T* const to = static_cast<T*>(out);
  if constexpr (N == 1) {
    run_moving<1>(f, std::array{static_cast<const T*>(a)}, to, n, indices);
  } else {
    const std::array in{static_cast<const T*>(a), static_cast<const T*>(b)};
    if ((moves & 1) == 0) return run_moving<2>(f, in, to, n, indices);
    if ((moves & 2) == 0) return run_moving<1>(f, in, to, n, indices);
    run_moving<3>(f, in, to, n, indices);
  }
}

/// A PointwiseRun for integers, one element at a time.
template <class T, class F>
void run_whole(const void* /*functor*/, const void* a, const void* b, unsigned moves, void* out, int64_t n) {
  const T *const x = static_cast<const T*>(a), *const y = static_cast<const T*>(b);
  T* const to = static_cast<T*>(out);
  const int64_t step_x = moves & 1, step_y = moves >> 1;
  for (int64_t i = 0; i < n; ++i) to[i] = F::whole(x[i * step_x], y[i * step_y]);
}

template <class F, class T>
concept OnWhole = requires(T x) {
  F::whole(x, x);
};

/// Null if F is not computed in T.
template <size_t N, class T, class F>
constexpr PointwiseRun run_of() {
  if constexpr (kIsFloat<T>) return kIsComputed<T> ? run_vectors<N, T, F> : nullptr;
  if constexpr (!kIsFloat<T> && OnWhole<F, T>) return run_whole<T, F>;
  return nullptr;
}

/// Runs `f` over all elements; N inputs of the output's dtype.
template <size_t N, class F>
void pointwise(std::string_view op, const Call& call, const F& f) {
  const auto loop = [&]() -> PointwiseLoop {
    switch (call.out[0].dtype) {
      case DType::f32:
        return {op, run_of<N, float, F>(), kLanes<float>};
      case DType::f64:
        return {op, run_of<N, double, F>(), kLanes<double>};
      case DType::bf16:
        return {op, run_of<N, bf16, F>(), kLanes<float>};
      case DType::f16:
        return {op, run_of<N, f16, F>(), kLanes<float>};
      case DType::i32:
        return {op, run_of<N, int32_t, F>()};
      case DType::i64:
        return {op, run_of<N, int64_t, F>()};
      case DType::u8:
        return {op, run_of<N, uint8_t, F>()};
      case DType::boolean:
        break;
    }
    return {op};
  }();
  run_pointwise(call, N, loop, &f);
}

/// Integers wrap around: signed arithmetic is computed in the unsigned type.
template <class T>
constexpr std::make_unsigned_t<T> bits_of(T x) {
  return static_cast<std::make_unsigned_t<T>>(x);
}

}  // namespace st::cpu::ST_ISA
