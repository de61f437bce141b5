// The frame of an optimizer that goes over a parameter element by element: one pass over gradient, parameter and state. Gradients of 16
// bits are widened a block at a time on the stack, so that a rule is compiled for f32 and f64 alone.
// Plain stores: the lines were just read, so non-temporal ones would only throw them out of the cache first.
// Include only from files compiled per instruction set (ST_ISA given by CMake).
#pragma once

#include <cmath>

#include "backend/cpu/convert.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/scalar.h"

namespace st::cpu::ST_ISA {

/// What every optimizer is given.
struct UpdateInputs {
  explicit UpdateInputs(const Call& call)
      : rate(scalar_of(call.in[3], 0) * call.attrs->real("lr_scale")),
        number(scalar_of(call.in[3], 1)),
        factor(scalar_of(call.in[1])),
        clip_value(call.attrs->real("clip_value") > 0 ? call.attrs->real("clip_value") : std::numeric_limits<double>::infinity()) {}

  double rate, number, factor, clip_value;  // number: of this update, from 1

  template <class P>
  Batch<P> true_gradient(const Batch<P>& stored) const {
    const Batch<P> most(static_cast<P>(clip_value));
    return xsimd::min(xsimd::max(stored * Batch<P>(static_cast<P>(factor)), -most), most);
  }
};

inline bool is_skipped(const Call& call) { return *call.in[2].as<const uint8_t>() != 0; }

/// Calls body(P{}) with the parameter's compute type, f32 or f64; gradients are f32, bf16 or f16, or f64.
template <class Body>
void with_parameter(const char* op, const Call& call, const Body& body) {
  const DType parameter = call.writes[0].dtype, gradient = call.in[0].dtype;
  if (parameter == DType::f32 && gradient != DType::f64 && is_floating(gradient)) return body(float{});
  if constexpr (kComputesDouble)
    if (parameter == DType::f64 && gradient == DType::f64) return body(double{});
  fail(Code::unsupported,
       text(op, ": the cpu backend has no update of ", parameter, " parameters from ", gradient, " gradients; keep f32 master weights"));
}

/// The gradient's elements [at, at + count) as P: where they lie, or widened into `room`.
template <class P>
const P* gradient_of(const Operand& gradient, int64_t at, int64_t count, P* room) {
  if (gradient.dtype == DType::f32 || gradient.dtype == DType::f64) return gradient.as<const P>() + at;
  const auto widen_from = [&](auto* from) {
    each_vector<P>(count, [&](int64_t i, int64_t n) { store_part(room + i, Batch<P>(load_part(from + at + i, n)), n); });
  };
  if constexpr (std::is_same_v<P, float>) {
    if (gradient.dtype == DType::bf16)
      widen_from(gradient.as<const bf16>());
    else
      widen_from(gradient.as<const f16>());
  }
  return room;
}

/// rule(g, p, state) -> the new p, of vectors; state: kStates of them, changed in place. call.writes: the parameter, then the state.
template <class P, size_t kStates, class Rule>
void update_elements(const Call& call, const Rule& rule) {
  constexpr int64_t kBlock = 1024;  // elements
  constexpr int64_t kAhead = 1024;  // elements: the hardware's own prefetcher ends with the page
  using B = Batch<P>;
  const UpdateInputs inputs(call);
  const int64_t gradient_bytes = bytes_of(call.in[0].dtype);

  call.workers->run_range(call.writes[0].elements(), kGrain, [&](int64_t begin, int64_t end) {
    // Of this task's own: a vector's store may alias what is captured, which would be read again behind each.
    const B factor(static_cast<P>(inputs.factor)), most(static_cast<P>(inputs.clip_value));
    const Rule update = rule;
    P* const parameter = call.writes[0].as<P>();
    std::array<P*, kStates> states;
    for (size_t s = 0; s < kStates; ++s) states[s] = call.writes[s + 1].as<P>();
    const char* const gradients = call.in[0].as<const char>();
    alignas(64) P room[kBlock];
    for (int64_t from = begin; from < end; from += kBlock) {
      const int64_t n = std::min(kBlock, end - from);
      const P* const gradient = gradient_of(call.in[0], from, n, room);
      each_vector<P>(n, [&](int64_t i, int64_t count) {
        const int64_t at = from + i;
        __builtin_prefetch(gradients + (at + kAhead) * gradient_bytes);
        for (size_t s = 0; s < kStates; ++s) __builtin_prefetch(states[s] + at + kAhead, 1);
        __builtin_prefetch(parameter + at + kAhead, 1);
        std::array<B, kStates> state;
        for (size_t s = 0; s < kStates; ++s) state[s] = load_part(states[s] + at, count);
        const B g = xsimd::min(xsimd::max(load_part(gradient + i, count) * factor, -most), most);
        const B p = update(g, load_part(parameter + at, count), state);
        for (size_t s = 0; s < kStates; ++s) store_part(states[s] + at, state[s], count);
        store_part(parameter + at, p, count);
      });
    }
  });
}

}  // namespace st::cpu::ST_ISA
