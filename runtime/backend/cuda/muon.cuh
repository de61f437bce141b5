// torch.optim.Muon on fp32 parameters (backend/cpu/muon.cpp has the formula); its products are matmul's (float_products.h):
//   move_momentum   the momentum and the direction, with the cpu's bits
//   set_scale       1 / norm of the direction
//   step_matrix     the parameter from the direction made orthogonal
#pragma once

#include <cmath>
#include <cstdint>

#include <device/access.h>
#include <device/threads.h>

#include "backend/cuda/true_gradient.cuh"
#include "backend/cuda/update.cuh"
#include "backend/cuda/vectors.cuh"

namespace st::cuda {

struct MuonMomentum {
  float keep, add;
  bool nesterov;
};

constexpr int kMuonVector = 4;

template <int kEach>
DEVICE void move_momentum_at(const MuonMomentum& rule, const void* gradient, GradientType type, float factor, float* momentum,
                             float* direction, int64_t at) {
  float g[kEach];
  true_gradients<kEach>(g, gradient, type, factor, at);
  auto own = load_vector<Vector<float, kEach>>(momentum + at);
  Vector<float, kEach> made;
  for (int i = 0; i < kEach; ++i) {
    const float moved = fused(rule.add, g[i] - own.at[i], own.at[i]);
    made.at[i] = held(rule.nesterov ? fused(rule.keep, moved - g[i], g[i]) : moved, kMostGradient<float>);
    own.at[i] = moved;
  }
  store_vector(momentum + at, own);
  store_vector(direction + at, made);
}

/// The direction is 0 with skip or after a fault.
KERNEL(kBlock)
move_momentum(IndexFaults faults, const uint8_t* skip, MuonMomentum rule, const void* gradient, GradientType type, const float* factor,
              float* momentum, float* direction, int64_t elements) {
  const int64_t first = (int64_t{block_index()} * kBlock + thread_index()) * kMuonVector;
  const int64_t end = first + kMuonVector < elements ? first + kMuonVector : elements;
  if (is_halted(faults, skip)) {
    for (int64_t i = first; i < end; ++i) direction[i] = 0;
  } else if (first + kMuonVector <= elements) {
    move_momentum_at<kMuonVector>(rule, gradient, type, *factor, momentum, direction, first);
  } else {
    for (int64_t i = first; i < end; ++i) move_momentum_at<1>(rule, gradient, type, *factor, momentum, direction, i);
  }
}

/// to[r][c] = from[r][c], whose rows begin `lead` elements apart.
KERNEL(kBlock)
place_matrix(const float* from, int64_t from_lead, float* to, int64_t to_lead, int64_t rows, int64_t columns) {
  const int64_t i = int64_t{block_index()} * kBlock + thread_index(), row = i / columns, column = i - row * columns;
  if (row < rows) to[row * to_lead + column] = from[row * from_lead + column];
}

/// One block: from X's sums of squares.
KERNEL(kBlock)
set_scale(const double* sums, int64_t count, double least, float* scale) {
  const double norm = sqrt(total_of(sums, count));
  if (thread_index() == 0) *scale = static_cast<float>(1 / (norm < least ? least : norm));
}

/// to = by * from; by: null: 1. Both are aligned to 16 bytes, and may be one.
KERNEL(kBlock)
copy_scaled(const float* from, const float* by, float* to, int64_t elements) {
  const int64_t first = (int64_t{block_index()} * kBlock + thread_index()) * kMuonVector;
  const float scale = by == nullptr ? 1 : *by;
  if (first + kMuonVector <= elements) {
    auto moved = load_vector<Vector<float, kMuonVector>>(from + first);
    for (float& each : moved.at) each *= scale;
    return store_vector(to + first, moved);
  }
  for (int64_t i = first; i < elements; ++i) to[i] = from[i] * scale;
}

struct MuonRates {
  double lr_scale, weight_decay, ratio;
};

/// The parameter [rows, columns] and its copy have the same rows; x has those of the whole.
KERNEL(kBlock)
step_matrix(IndexFaults faults, const uint8_t* skip, MuonRates of, const double* rates, const float* x, int64_t x_lead, float* parameter,
            void* copy, DType copy_type, int64_t lead, int64_t first, int64_t rows, int64_t columns) {
  const int64_t i = int64_t{block_index()} * kBlock + thread_index(), row = i / columns, column = i - row * columns;
  if (row >= rows || is_halted(faults, skip)) return;
  const double rate = rates[0] * of.lr_scale;
  const auto shrink = static_cast<float>(rate * of.weight_decay), by = static_cast<float>(rate * of.ratio);
  const int64_t at = first + row * lead + column;
  const Vector<float, 1> p = {{parameter[at] - (shrink * parameter[at] + by * x[row * x_lead + column])}};
  parameter[at] = p.at[0];
  if (copy != nullptr) copy_type == DType::bf16 ? store_narrow<1, Bf16>(copy, at, p) : store_narrow<1, F16>(copy, at, p);
}

}  // namespace st::cuda
