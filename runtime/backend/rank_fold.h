// The sum of what several ranks have of the same elements, on a device.
#pragma once

#include <cstdint>
#include <span>

#include "backend/address.h"
#include "base/dtype.h"
#include "base/reduce_op.h"

namespace st {

/// sums[i] = terms[0][i] + terms[1][i] + ..., one term after the other; where it adds, sums[i] + terms[0][i] + ... Both types, the
/// additions and the roundings are those of combine.h: a sum is f32 of f32, bf16 and f16 terms, f64 of f64, i64 of integers, or has the
/// type of the terms (SumType::own, of floats). The place of the sums may be exactly that of one of the terms, if the types are equal;
/// otherwise the ranges do not overlap.
struct RankFold {
  std::span<const Address> terms;  // at least one
  Address sums;
  DType dtype = DType::f32;  // of the terms
  int64_t elements = 0;
  bool adds = false;
  SumType type = SumType::wide;
};

/// For a backend whose kernels are functions of the host; addresses are those of its kernels.
void run_fold(const RankFold& fold);

}  // namespace st
