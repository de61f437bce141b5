// How one parameter is updated.
#pragma once

#include "ir/attrs.h"
#include "ir/op.h"

namespace st {

struct OptimizerChoice {
  Op op = Op::adamw;  // its state is what optimizer_state() says
  Attrs attrs = {};
  int clip_group = -1;  // whose factor of clip() it takes; -1: that of all gradients
};

}  // namespace st
