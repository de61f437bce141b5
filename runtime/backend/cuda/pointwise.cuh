// Elementwise ops: y = f(x..), where the inputs broadcast to y. A kernel is compiled for types, not for ops: which formula it computes is
// an argument, as memory limits all of them. A thread has kEach neighbouring elements of y and reads them in vectors where an input has
// them side by side; it reads before it writes, so that y may be one of the inputs.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include <device/access.h>
#include <device/threads.h>

#include "backend/cuda/doubles.cuh"
#include "backend/cuda/halves.cuh"
#include "backend/cuda/vectors.cuh"
#include "backend/cuda/walk.cuh"
#include "ir/op.h"

namespace st::cuda {

/// y = f(a, b, ..), computed in fp32 for 16-bit floats and rounded once.
template <int kEach, class T, class F, class... X>
DEVICE void each(T (&y)[kEach], const F& f, const X (&... x)[kEach]) {
  for (int i = 0; i < kEach; i += 2) narrow_pair(y + i, f(widen(x[i])...), f(widen(x[i + 1])...));
}

/// One input. p, q: scale and shift of affine, low and high of clamp.
template <class T>
struct OfOne {
  using C = Compute<T>;
  Op op;
  C p, q;

  template <int kEach>
  DEVICE void operator()(T (&y)[kEach], const T (&x)[kEach]) const {
    switch (op) {
      case Op::affine:
        return each(
            y, [this](C v) { return plus(times(p, v), q); }, x);
      case Op::sqrt:
        return each(
            y, [](C v) { return root(flushed(v)); }, x);
      case Op::abs:
        return each(
            y, [](C v) { return magnitude(v); }, x);
      case Op::neg:
        return each(
            y, [](C v) { return negative(v); }, x);
      case Op::sign:
        return each(
            y, [](C v) { return is_less(C(0), v)   ? C(1)
                                : is_less(v, C(0)) ? C(-1)
                                                   : plus(v, v); }, x);
      case Op::clamp:
        return each(
            y,
            [this](C v) {
              const C raised = is_less(v, p) ? p : v;
              return is_less(q, raised) ? q : raised;
            },
            x);
      case Op::relu:
        return each(
            y, [](C v) { return is_less(v, C(0)) ? C(0) : v; }, x);
      default:
        return;
    }
  }
};

/// Two inputs; the second may have another type (a 16-bit value that is added to a slot of fp32).
template <class T, class Other>
struct OfTwo {
  using C = Compute<T>;
  Op op;

  template <int kEach>
  DEVICE void operator()(T (&y)[kEach], const T (&x)[kEach], const Other (&z)[kEach]) const {
    switch (op) {
      case Op::add:
      case Op::accumulate:
        return each(
            y, [](C a, C b) { return plus(a, b); }, x, z);
      case Op::sub:
        return each(
            y, [](C a, C b) { return plus(a, -b); }, x, z);
      case Op::mul:
        return each(
            y, [](C a, C b) { return times(a, b); }, x, z);
      case Op::div:
        return each(
            y, [](C a, C b) { return over(a, b); }, x, z);
      case Op::minimum:
        return each(
            y, [](C a, C b) { return is_less(a, b) || a != a ? a : b; }, x, z);
      case Op::maximum:
        return each(
            y, [](C a, C b) { return is_less(b, a) || a != a ? a : b; }, x, z);
      case Op::relu_backward:
        return each(
            y, [](C at, C dy) { return is_less(C(0), at) ? dy : C(0); }, x, z);
      case Op::tanh_backward:
        return each(
            y, [](C at, C dy) { return times(dy, times(plus(C(1), -at), plus(C(1), at))); }, x, z);
      case Op::sigmoid_backward:
        return each(
            y, [](C at, C dy) { return times(times(dy, at), plus(C(1), -at)); }, x, z);
      default:
        return;
    }
  }
};

/// Two inputs of integers, which wrap around.
template <class T>
struct OfIntegers {
  using Bits = std::make_unsigned_t<T>;
  Op op;

  template <int kEach>
  DEVICE void operator()(T (&y)[kEach], const T (&x)[kEach], const T (&z)[kEach]) const {
    for (int i = 0; i < kEach; ++i) {
      const Bits a = static_cast<Bits>(x[i]), b = static_cast<Bits>(z[i]);
      switch (op) {
        case Op::sub:
          y[i] = static_cast<T>(a - b);
          break;
        case Op::mul:
          y[i] = static_cast<T>(a * b);
          break;
        case Op::minimum:
          y[i] = x[i] < z[i] ? x[i] : z[i];
          break;
        case Op::maximum:
          y[i] = x[i] > z[i] ? x[i] : z[i];
          break;
        default:
          y[i] = static_cast<T>(a + b);
          break;
      }
    }
  }
};

/// A bit for each outcome of a comparison that makes it true: 1 less, 2 equal, 4 greater, 8 unordered (NaN).
struct Comparison {
  unsigned accepted;

  template <int kEach, class T>
  DEVICE void operator()(uint8_t (&y)[kEach], const T (&x)[kEach], const T (&z)[kEach]) const {
    for (int i = 0; i < kEach; ++i) {
      const auto a = flushed_of(x[i]), b = flushed_of(z[i]);
      const unsigned outcome = a < b ? 1 : a == b ? 2 : a > b ? 4 : 8;
      y[i] = (accepted & outcome) != 0 ? 1 : 0;
    }
  }

 private:
  template <class T>
  DEVICE static auto flushed_of(T x) {
    if constexpr (std::is_integral_v<T>)
      return x;
    else
      return flushed(widen(x));
  }
};

/// y = condition ? a : b, as bits.
struct Choice {
  template <int kEach, class Bits>
  DEVICE void operator()(Bits (&y)[kEach], const uint8_t (&condition)[kEach], const Bits (&a)[kEach], const Bits (&b)[kEach]) const {
    for (int i = 0; i < kEach; ++i) y[i] = condition[i] != 0 ? a[i] : b[i];
  }
};

/// Elements of a thread: 16 bytes of the widest operand, and 8 at most.
template <class... T>
constexpr size_t widest() {
  size_t bytes = 2;
  ((bytes = sizeof(T) > bytes ? sizeof(T) : bytes), ...);
  return bytes;
}
template <class... T>
constexpr int kWidth = static_cast<int>(16 / widest<T...>());

template <int kEach, class F, class Y, int kInputs, size_t... kInput, class... X>
DEVICE void compute_at(const F& f, Y* y, const Walk<kInputs>& walk, int64_t first, int64_t elements, std::index_sequence<kInput...>,
                       const X*... x) {
  const InputPlaces<kInputs> places = places_of(walk, first, elements);
  if (places.left >= kEach) {
    Vector<Y, kEach> made;
    f(made.at, read_run<kEach>(x, places.at[kInput], walk.last_stride(static_cast<int>(kInput))).at...);
    return store_vector(y + first, made);
  }
  for (int64_t i = first; i < first + kEach && i < elements; ++i) {
    const InputPlaces<kInputs> own = places_of(walk, i, elements);
    Vector<Y, 2> made{};  // formulas make pairs
    f(made.at, read_run<2>(x, own.at[kInput], 0).at...);
    y[i] = made.at[0];
  }
}

template <class F, class Y, class... X>
KERNEL(kBlock)
pointwise(F f, Y* y, Walk<sizeof...(X)> walk, int64_t elements, const X*... x) {
  constexpr int kEach = kWidth<Y, X...>;
  const int64_t first = (int64_t{block_index()} * kBlock + thread_index()) * kEach;
  if (first < elements) compute_at<kEach>(f, y, walk, first, elements, std::make_index_sequence<sizeof...(X)>{}, x...);
}

}  // namespace st::cuda
