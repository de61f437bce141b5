// What a gradient rule sees of the node it differentiates. The rules themselves stand in gradients.cpp, one a row of ops.def.
#pragma once

#include <vector>

#include "ir/build.h"

namespace st {

/// One node's turn in reverse order. `b` appends to the backward section; values given and taken are values of that section.
class Chain {
 public:
  virtual ~Chain() = default;
  virtual const Node& node() const = 0;
  virtual Value in(int32_t i) = 0;          // the forward input, recalled in backward
  virtual Value out(int32_t i) = 0;         // the forward output, recalled
  virtual Value d(int32_t i) = 0;           // gradient of output i; no value when nothing depends on it
  virtual bool needs(int32_t i) const = 0;  // whether input i leads to a trainable parameter
  virtual void give(int32_t i, Value gradient) = 0;
  virtual Type in_type(int32_t i) const = 0;
  /// What input i's gradient is best given in: its own type, but fp32 of an input of 16 bits that was cast from fp32 and goes back there.
  virtual DType gradient_type(int32_t i) const = 0;
  virtual Type out_type(int32_t i) const = 0;

  explicit Chain(Builder& builder) : b(builder) {}
  Builder& b;
};

/// Gives each needed input its gradient. Throws unsupported for an op or operand without one, naming it.
void differentiate(Chain& chain);

}  // namespace st
