// The optimizer's update of every parameter that has a gradient.
#pragma once

#include "ir/attrs.h"
#include "ir/op.h"
#include "ir/program.h"

namespace st {

/// One optimizer node a parameter, on the layout found: op, its attributes, and the names of its moments (each a slot
/// "<moment>.<parameter>" like the parameter, created zero). Adds the control slot "rates", f64 [learning rate, number of this update from
/// 1], which the host writes before each step. A moment whose slot is there already (keep_moments) is that one. Call after clip().
struct OptimizerChoice {
  Op op = Op::adamw;
  Attrs attrs;
  std::vector<std::string> moments;
};
void update(Program& program, const OptimizerChoice& optimizer);

/// Adds the optimizer slots of another program of the same model, in its order, so that both have their moments at the same places. Call
/// before update().
void keep_moments(Program& program, const Program& of);

}  // namespace st
