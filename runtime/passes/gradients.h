// The interface between a gradient rule and the node that it differentiates. The rules are in gradients.cpp, named by the rows of ops.def.
#pragma once

#include <vector>

#include "ir/build.h"

namespace st {

/// One node, visited in reverse order. `b` appends to the backward section; all values here belong to that section.
class Chain {
 public:
  virtual ~Chain() = default;
  virtual const Node& node() const = 0;
  virtual Value in(int32_t i) = 0;          // forward input i, available in backward
  virtual Value out(int32_t i) = 0;         // forward output i, available in backward
  virtual Value d(int32_t i) = 0;           // gradient of output i; empty if nothing depends on it
  virtual bool needs(int32_t i) const = 0;  // whether input i depends on a trainable parameter
  virtual void give(int32_t i, Value gradient) = 0;
  virtual Type in_type(int32_t i) const = 0;
  /// The best type for input i's gradient: the input's own, or fp32 for a 16-bit input cast from fp32, whose gradient is cast back.
  virtual DType gradient_type(int32_t i) const = 0;
  virtual Type out_type(int32_t i) const = 0;

  explicit Chain(Builder& builder) : b(builder) {}
  Builder& b;
};

/// Gives each needed input its gradient. Throws unsupported that names an op or operand without one.
void differentiate(Chain& chain);

}  // namespace st
