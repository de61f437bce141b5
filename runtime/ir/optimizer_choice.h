// How one parameter is updated.
#pragma once

#include "ir/attrs.h"
#include "ir/op.h"

namespace st {

struct OptimizerChoice {
  Op op = Op::adamw;  // optimizer_state() lists its state
  Attrs attrs = {};
  int clip_group = -1;  // the group whose factor of clip() applies; -1: the factor of all gradients
};

}  // namespace st
