// The loop of an elementwise optimizer: one pass over gradient, parameter and state. 16-bit gradients are widened on the stack, a block at
// a time, so that a rule is compiled for f32 and f64 only. Plain stores: the lines were just read, so non-temporal stores would only evict
// them first. Include only from files compiled per instruction set (ST_ISA given by CMake).
#pragma once

#include <cmath>

#include "backend/cpu/convert.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/scalar.h"
#include "backend/cpu/stream_ahead.h"
#include "backend/update_limits.h"

namespace st::cpu::ST_ISA {

/// x clamped to [-most, most]; NaN stays, as min and max return their second operand for it.
template <class B>
B held(const B& x, const B& most) {
  return xsimd::max(-most, xsimd::min(most, x));
}

/// The inputs of every optimizer. P: the parameter's type.
template <class P>
struct UpdateInputs {
  explicit UpdateInputs(const Call& call, P largest = kMostGradient<P>)
      : rate(scalar_of(call.in[3], 0) * call.attrs->real("lr_scale")),
        number(scalar_of(call.in[3], 1)),
        factor(static_cast<P>(scalar_of(call.in[1]))),
        most(largest) {
    if (const double clip = call.attrs->real("clip_value"); clip > 0) most = static_cast<P>(std::min<double>(clip, largest));
  }

  double rate, number;  // number: index of this update, from 1
  P factor, most;       // most: the largest magnitude of an element

  Batch<P> true_gradient(const Batch<P>& stored) const { return held(stored * Batch<P>(factor), Batch<P>(most)); }
};

/// An optimizer's epsilon, raised to kLeastEpsilon.
template <class P>
P epsilon_of(const Call& call) {
  return static_cast<P>(std::max(call.attrs->real("epsilon"), kLeastEpsilon<P>));
}

inline bool is_skipped(const Call& call) { return *as<const uint8_t>(call.in[2]) != 0; }

/// Calls body(P{}) with the parameter's compute type, f32 or f64; gradients are f32, bf16 or f16, or f64.
template <class Body>
void with_parameter(const char* op, DType parameter, const Call& call, const Body& body) {
  const DType gradient = call.in[0].dtype;
  if (parameter == DType::f32 && gradient != DType::f64 && is_floating(gradient)) return body(float{});
  if constexpr (kComputesDouble)
    if (parameter == DType::f64 && gradient == DType::f64) return body(double{});
  fail(Code::unsupported,
       text(op, ": the cpu backend cannot update ", parameter, " parameters from ", gradient, " gradients; keep f32 master weights"));
}
template <class Body>
void with_parameter(const char* op, const Call& call, const Body& body) {
  with_parameter(op, call.writes[0].dtype, call, body);
}

/// The gradient's elements [at, at + count) as P: in place, or widened into `room`.
template <class P>
const P* gradient_of(const Operand& gradient, int64_t at, int64_t count, P* room) {
  if (gradient.dtype == DType::f32 || gradient.dtype == DType::f64) return as<const P>(gradient) + at;
  const int64_t ahead = stream_ahead();
  const auto widen_from = [=](auto* from) {
    each_vector<P>(count, [=](int64_t i, int64_t n) {
      __builtin_prefetch(from + at + i + ahead);
      store_part(room + i, Batch<P>(load_part(from + at + i, n)), n);
    });
  };
  if constexpr (std::is_same_v<P, float>) {
    if (gradient.dtype == DType::bf16)
      widen_from(as<const bf16>(gradient));
    else
      widen_from(as<const f16>(gradient));
  }
  return room;
}

/// The 16-bit copy of the parameter that an update writes, its last slot; null: none.
inline const Operand* working_copy(const Call& call) {
  const Operand& last = call.writes.back();
  return last.dtype == DType::bf16 || last.dtype == DType::f16 ? &last : nullptr;
}

/// Copies elements [at, at + count) of the updated parameter.
inline void write_copy(const Operand& copy, const float* parameter, int64_t at, int64_t count) {
  const auto narrow_to = [=](auto* to) {
    each_vector<float>(count, [=](int64_t i, int64_t n) { store_part(to + at + i, load_part(parameter + at + i, n), n); });
  };
  if (copy.dtype == DType::bf16)
    narrow_to(as<bf16>(copy));
  else
    narrow_to(as<f16>(copy));
}

/// Copies the whole parameter, after an update that takes several passes.
inline void write_copy(const Call& call) {
  const Operand* const copy = working_copy(call);
  if (copy == nullptr) return;
  const float* const parameter = as<const float>(call.writes[0]);
  call.workers->run_range(copy->elements(), kGrain, [&](int64_t begin, int64_t end) { write_copy(*copy, parameter, begin, end - begin); });
}

/// (1 - step decay) p - step direction, with p rounded once. torch's order rounds it twice, and also rounds 1 - step decay to 24 bits, the
/// same way in every step: for a decay of 1e-5 that is off by up to 0.3 % (tests/conformance/README.md has the effect over 100 steps).
template <class B>
B decayed(const B& p, const B& decay, const B& step, const B& direction) {
  return fma(-step, fma(decay, p, direction), p);
}

/// update_elements() of n elements, whole vectors. The rule is copied: a store may alias what a reference points to, which would then be
/// read again after each store. The compiler keeps a copy in registers.
template <class P, size_t kStates, class Rule>
[[gnu::noinline]] void update_vectors(const Rule& of_task, const UpdateInputs<P>& inputs, int64_t ahead, const P* gradient, P* parameter,
                                      std::array<P*, kStates> states, int64_t n) {
  using B = Batch<P>;
  const Rule rule = of_task;
  const B factor(inputs.factor), most(inputs.most);
  for (int64_t i = 0; i < n; i += kLanes<P>) {
    __builtin_prefetch(gradient + i + ahead);
    for (size_t s = 0; s < kStates; ++s) __builtin_prefetch(states[s] + i + ahead, 1);
    __builtin_prefetch(parameter + i + ahead, 1);
    std::array<B, kStates> state;
    for (size_t s = 0; s < kStates; ++s) state[s] = load(states[s] + i);
    const B g = held(load(gradient + i) * factor, most);
    const B p = rule(g, load(parameter + i), state);
    for (size_t s = 0; s < kStates; ++s) store(states[s] + i, state[s]);
    store(parameter + i, p);
  }
}

/// update_elements() of one block.
template <class P, size_t kStates, class Rule>
void update_block(const Rule& rule, const UpdateInputs<P>& inputs, int64_t ahead, const P* gradient, P* parameter,
                  const std::array<P*, kStates>& states, int64_t n) {
  const int64_t rest = n % kLanes<P>;
  update_vectors<P, kStates>(rule, inputs, ahead, gradient, parameter, states, n - rest);
  if (rest == 0) return;
  // The last few elements go through padded vectors, so that the loop above is the only one.
  alignas(64) P images[kStates + 2][kLanes<P>] = {};
  std::array<P*, kStates> state_images;
  std::copy_n(gradient + n - rest, rest, images[0]);
  std::copy_n(parameter + n - rest, rest, images[1]);
  for (size_t s = 0; s < kStates; ++s) std::copy_n(states[s] + n - rest, rest, state_images[s] = images[s + 2]);
  update_vectors<P, kStates>(rule, inputs, 0, images[0], images[1], state_images, kLanes<P>);
  std::copy_n(images[1], rest, parameter + n - rest);
  for (size_t s = 0; s < kStates; ++s) std::copy_n(state_images[s], rest, states[s] + n - rest);
}

/// rule(g, p, state) returns the new p, as vectors; state: kStates vectors, changed in place. call.writes: the parameter, the state, and
/// the 16-bit copy if there is one.
template <class P, size_t kStates, class Rule>
void update_elements(const Call& call, const UpdateInputs<P>& inputs, const Rule& rule) {
  constexpr int64_t kBlock = 1024;  // elements
  const int64_t ahead = stream_ahead();
  const Operand* const copy = working_copy(call);

  call.workers->run_range(call.writes[0].elements(), kGrain, [&](int64_t begin, int64_t end) {
    alignas(64) P room[kBlock];
    for (int64_t from = begin; from < end; from += kBlock) {
      const int64_t n = std::min(kBlock, end - from);
      const P* const gradient = gradient_of(call.in[0], from, n, room);
      std::array<P*, kStates> states;
      for (size_t s = 0; s < kStates; ++s) states[s] = as<P>(call.writes[s + 1]) + from;
      update_block<P, kStates>(rule, inputs, ahead, gradient, as<P>(call.writes[0]) + from, states, n);
      if constexpr (std::is_same_v<P, float>)
        if (copy != nullptr) write_copy(*copy, as<const float>(call.writes[0]), from, n);
    }
  });
}

}  // namespace st::cpu::ST_ISA
