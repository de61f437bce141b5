// Elementwise kernels: a functor on vectors is all that an op's file holds. Inputs broadcast to the output; bf16 and f16 are computed in
// float; integers go through the functor's static `whole` where it has one.
#pragma once

#include <utility>

#include "backend/cpu/convert.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/segments.h"

namespace st::cpu::ST_ISA {

/// out[i] = f(in[0][i], ...) for i < n. kMoves: bit k set when input k advances, else it stands still.
template <unsigned kMoves, class T, class F, size_t N, size_t... I>
void apply_moving(const F& f, const std::array<const T*, N>& in, T* out, int64_t n, std::index_sequence<I...>) {
  using B = Batch<Compute<T>>;
  constexpr int64_t L = kLanes<Compute<T>>;
  const B still[] = {((kMoves >> I) & 1) != 0 ? B(0) : B(widen(in[I][0]))...};
  int64_t i = 0;
  for (; i + L <= n; i += L) store(out + i, B(f((((kMoves >> I) & 1) != 0 ? load(in[I] + i) : still[I])...)));
  if (i < n) store_tail(out + i, B(f((((kMoves >> I) & 1) != 0 ? load_tail(in[I] + i, n - i, Compute<T>(1)) : still[I])...)), n - i);
}

template <class T, class F, size_t N>
void apply(const F& f, const std::array<const T*, N>& in, const std::array<bool, N>& moves, T* out, int64_t n) {
  constexpr auto indices = std::make_index_sequence<N>{};
  if constexpr (N == 2) {
    if (!moves[0]) return apply_moving<2>(f, in, out, n, indices);
    if (!moves[1]) return apply_moving<1>(f, in, out, n, indices);
  }
  apply_moving<(1U << N) - 1>(f, in, out, n, indices);
}

template <class T, class F>
void apply_whole(const std::array<const T*, 2>& in, const std::array<bool, 2>& moves, T* out, int64_t n) {
  const int64_t a = moves[0], b = moves[1];
  for (int64_t i = 0; i < n; ++i) out[i] = F::whole(in[0][i * a], in[1][i * b]);
}

template <class F, class T>
concept OnWhole = requires(T x) {
  F::whole(x, x);
};

template <class T, class F, size_t N>
void pointwise_of(const Call& call, const F& f) {
  std::array<const Shape*, N> shapes;
  std::array<const T*, N> base;
  for (size_t k = 0; k < N; ++k) {
    shapes[k] = &call.in[k].shape;
    base[k] = call.in[k].template as<const T>();
  }
  T* const out = call.out[0].template as<T>();
  const Segments<N> segments(call.out[0].shape, shapes);
  std::array<bool, N> moves;
  for (size_t k = 0; k < N; ++k) moves[k] = segments.inner_stride(k) != 0;
  call.workers->run_range(segments.elements, kGrain, [&](int64_t begin, int64_t end) {
    segments.walk(begin, end, [&](int64_t to, const std::array<int64_t, N>& from, int64_t length) {
      std::array<const T*, N> in;
      for (size_t k = 0; k < N; ++k) in[k] = base[k] + from[k];
      if constexpr (std::is_integral_v<T>) {
        apply_whole<T, F>(in, moves, out + to, length);
      } else {
        apply<T>(f, in, moves, out + to, length);
      }
    });
  });
}

/// Runs `f` over all elements; N inputs of the output's dtype.
template <size_t N, class F>
void pointwise(std::string_view op, const Call& call, const F& f) {
  with_computed_type(call.out[0].dtype, [&](auto t) {
    using T = decltype(t);
    if constexpr (kIsFloat<T> || (OnWhole<F, T> && !std::is_same_v<T, bool>)) {
      pointwise_of<T, F, N>(call, f);
    } else {
      fail(Code::unsupported, text(op, ": the cpu backend does not compute it in ", call.out[0].dtype, "; cast first"));
    }
  });
}

/// Integers wrap: signed overflow is computed in the unsigned type.
template <class T>
constexpr std::make_unsigned_t<T> bits_of(T x) {
  return static_cast<std::make_unsigned_t<T>>(x);
}

}  // namespace st::cpu::ST_ISA
