// Elementwise optimizers on fp32 parameters: one pass over gradient, parameter and state, with the cpu's bits where it has fma (of its
// instruction sets all but the portable one); backend/cpu's files of the same ops have the formulas and their sources. A thread has 4
// elements; the 16-bit copy of the parameter that products read is written in the same pass. The kernel reads what the step's number and
// rate determine (update_numbers.cuh), the factor and the skip from memory, so that a recording can be repeated.
#pragma once

#include <cmath>
#include <cstdint>

#include <device/access.h>
#include <device/threads.h>

#include "backend/cuda/doubles.cuh"
#include "backend/cuda/fused.cuh"
#include "backend/cuda/halves.cuh"
#include "backend/cuda/index_faults.cuh"
#include "backend/cuda/update_numbers.h"
#include "backend/cuda/vectors.cuh"
#include "backend/update_limits.h"
#include "base/dtype.h"

namespace st::cuda {

constexpr float kLargest = 0x1.fffffep127F;  // of fp32

/// x clamped to [-most, most]; NaN stays.
DEVICE float held(float x, float most) {
  const float lowered = most < x ? most : x;
  return -most > lowered ? -most : lowered;
}

/// (1 - step decay) p - step direction, with p rounded once.
DEVICE float decayed(float p, float decay, float step, float direction) { return fused(-step, fused(decay, p, direction), p); }

// Rules: the new parameter from the true gradient g, the parameter p and the state, which changes in place.

struct Adamw {
  static constexpr int kStates = 2;
  DEVICE float operator()(const UpdateNumbers& n, float gradient, float p, float* state) const {
    float &m = state[0], &v = state[1];
    const float g = held(fused(n.penalty, p, gradient), kMostGradient<float>);
    m = fused(n.keep1, m, n.take1 * g);
    v = fused(n.keep2, v, n.take2 * g * g);
    const float denominator = fused(root(v), n.unbias2, n.epsilon);
    return decayed(p, n.shrink, n.step, m / denominator);
  }
};

struct Sgd {
  static constexpr int kStates = 0;
  DEVICE float operator()(const UpdateNumbers& n, float gradient, float p, float* /*state*/) const {
    return fused(-n.step, fused(n.penalty, p, gradient), p);
  }
};

struct SgdWithMomentum {
  static constexpr int kStates = 1;
  bool nesterov;
  DEVICE float operator()(const UpdateNumbers& n, float gradient, float p, float* state) const {
    const float g = fused(n.penalty, p, gradient);
    state[0] = held(fused(n.keep1, state[0], n.take1 * g), kLargest);
    return fused(-n.step, nesterov ? held(fused(n.momentum, state[0], g), kLargest) : state[0], p);
  }
};

struct Lion {
  static constexpr int kStates = 1;
  DEVICE float operator()(const UpdateNumbers& n, float g, float p, float* state) const {
    const float towards = fused(n.keep1, state[0], n.take1 * g);
    const float direction = towards > 0 ? 1.0F : towards < 0 ? -1.0F : towards == 0 ? 0.0F : towards;
    state[0] = fused(n.keep2, state[0], n.take2 * g);
    return decayed(p, n.shrink, n.step, direction);
  }
};

struct Adagrad {
  static constexpr int kStates = 1;
  DEVICE float operator()(const UpdateNumbers& n, float gradient, float p, float* state) const {
    const float g = held(fused(n.penalty, p, gradient), kMostGradient<float>);
    const float sum = fused(g, g, state[0] + n.initial);
    state[0] = kLargest < sum ? kLargest : sum;
    return fused(-n.step, g / (root(state[0]) + n.epsilon), p);
  }
};

/// State: v, then b if there is momentum, then a if centered.
template <bool kMomentum, bool kCentered>
struct Rmsprop {
  static constexpr int kStates = 1 + (kMomentum ? 1 : 0) + (kCentered ? 1 : 0);
  DEVICE float operator()(const UpdateNumbers& n, float gradient, float p, float* state) const {
    const float g = held(fused(n.penalty, p, gradient), kMostGradient<float>);
    state[0] = fused(n.keep2, state[0], n.take2 * g * g);
    float variance = state[0];
    if constexpr (kCentered) {
      float& mean = state[kStates - 1];
      mean = fused(n.keep2, mean, n.take2 * g);
      variance = fused(-mean, mean, variance);
      variance = variance > 0 ? variance : 0;  // rounding may make it negative
    }
    const float normal = g / (root(variance) + n.epsilon);
    if constexpr (kMomentum) {
      state[1] = fused(n.momentum, state[1], normal);
      return fused(-n.step, state[1], p);
    } else {
      return fused(-n.step, normal, p);
    }
  }
};

/// The gradient's type, and that of the parameter's copy if there is one.
struct UpdateTypes {
  DType gradient, copy;
};

template <int kEach, class T>
DEVICE void load_wide(float* to, const void* from, int64_t at) {
  const auto read = load_vector<Vector<T, kEach>>(static_cast<const T*>(from) + at);
  for (int i = 0; i < kEach; ++i) to[i] = widen(read.at[i]);
}

template <int kEach>
DEVICE void load_gradient(float* to, const void* gradient, DType type, int64_t at) {
  if (type == DType::f32) return load_wide<kEach, float>(to, gradient, at);
  if (type == DType::bf16) return load_wide<kEach, Bf16>(to, gradient, at);
  load_wide<kEach, F16>(to, gradient, at);
}

template <int kEach, class T>
DEVICE void store_narrow(void* to, int64_t at, const Vector<float, kEach>& from) {
  Vector<T, kEach> made;
  if constexpr (kEach == 1) {
    T pair[2];
    narrow_pair(pair, from.at[0], 0.0F);
    made.at[0] = pair[0];
  } else {
    for (int i = 0; i < kEach; i += 2) narrow_pair(made.at + i, from.at[i], from.at[i + 1]);
  }
  store_vector(static_cast<T*>(to) + at, made);
}

/// Addresses of the states; one where there is none, as arrays have no length of 0.
template <class Rule>
using StatePlaces = Pointers<float, Rule::kStates == 0 ? 1 : Rule::kStates>;

template <int kEach, class Rule>
DEVICE void update_at(const Rule& rule, const UpdateNumbers& numbers, float factor, UpdateTypes types, const void* gradient,
                      float* parameter, const StatePlaces<Rule>& states, void* copy, int64_t at) {
  float g[kEach];
  load_gradient<kEach>(g, gradient, types.gradient, at);
  auto p = load_vector<Vector<float, kEach>>(parameter + at);
  Vector<float, kEach> state[Rule::kStates + 1];
  for (int s = 0; s < Rule::kStates; ++s) state[s] = load_vector<Vector<float, kEach>>(states.at[s] + at);
  for (int i = 0; i < kEach; ++i) {
    float own[Rule::kStates + 1];
    for (int s = 0; s < Rule::kStates; ++s) own[s] = state[s].at[i];
    p.at[i] = rule(numbers, held(g[i] * factor, numbers.most), p.at[i], own);
    for (int s = 0; s < Rule::kStates; ++s) state[s].at[i] = own[s];
  }
  for (int s = 0; s < Rule::kStates; ++s) store_vector(states.at[s] + at, state[s]);
  store_vector(parameter + at, p);
  if (copy == nullptr) return;
  if (types.copy == DType::bf16) return store_narrow<kEach, Bf16>(copy, at, p);
  store_narrow<kEach, F16>(copy, at, p);
}

constexpr int kUpdateVector = 4;

template <class Rule>
KERNEL(kBlock)
update_elements(Rule rule, IndexFaults faults, const UpdateNumbers* numbers, const float* factor, const uint8_t* skip, UpdateTypes types,
                const void* gradient, float* parameter, StatePlaces<Rule> states, void* copy, int64_t elements) {
  if (*skip != 0 || has_fault(faults)) return;
  const int64_t first = (int64_t{block_index()} * kBlock + thread_index()) * kUpdateVector;
  const UpdateNumbers own = *numbers;
  if (first + kUpdateVector <= elements)
    return update_at<kUpdateVector>(rule, own, *factor, types, gradient, parameter, states, copy, first);
  for (int64_t i = first; i < elements; ++i) update_at<1>(rule, own, *factor, types, gradient, parameter, states, copy, i);
}

}  // namespace st::cuda
