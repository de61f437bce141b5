// The optimizer's update of every parameter that has a gradient.
#pragma once

#include "ir/attrs.h"
#include "ir/op.h"
#include "ir/program.h"

namespace st {

/// One optimizer node a parameter, on the layout found: op, its attributes, and the names of its moments (each a slot
/// "<moment>.<parameter>" like the parameter, created zero). Adds the control slot "rates", f64 [learning rate, number of this update from
/// 1], which the host writes before each step. Call after clip().
struct OptimizerChoice {
  Op op = Op::adamw;
  Attrs attrs;
  std::vector<std::string> moments;
};
void update(Program& program, const OptimizerChoice& optimizer);

}  // namespace st
