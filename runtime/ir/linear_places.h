// The positions of fused_linear's optional operands and outputs: its attributes say which exist; they come in this order.
#pragma once

#include <cstdint>

#include "ir/attrs.h"

namespace st {

/// Indices; -1: absent. x and weight are operands 0 and 1, y is output 0.
struct LinearPlaces {
  int32_t bias = -1, at = -1, residual = -1, packed = -1, operands = 2;
  int32_t pre_activation = -1, column_sums = -1, outputs = 1;

  explicit LinearPlaces(const Attrs& attrs) {
    if (attrs.flag("bias")) bias = operands++;
    if (attrs.flag("backward")) at = operands++;
    if (attrs.flag("residual")) residual = operands++;
    if (attrs.flag("packed")) packed = operands++;
    if (attrs.flag("pre_activation")) pre_activation = outputs++;
    if (attrs.flag("column_sums")) column_sums = outputs++;
  }
};

}  // namespace st
