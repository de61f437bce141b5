// A model's weights and a peer's results for them, and the comparison of gradients.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "checkpoint/safetensors.h"
#include "interpreter.h"
#include "passes/autodiff.h"
#include "passes/dropout.h"

namespace st {

/// A safetensors file in fixtures/: parameters and "gradient/<parameter>", both under our names, and numbers as metadata.
class ParityFixture {
 public:
  explicit ParityFixture(const std::string& name) : file_(std::string(ST_FIXTURES "/") + name) {}

  conformance::Tensor tensor(const std::string& name) const {
    const TensorRecord& record = file_.record(name);
    conformance::Tensor value(record.dtype, record.shape);
    const auto bytes = file_.bytes(record);
    value.bytes().assign(bytes.begin(), bytes.end());
    return value;
  }
  int64_t number(const std::string& key) const { return std::stoll(file_.header().metadata.at(key)); }
  double real(const std::string& key) const { return std::stod(file_.header().metadata.at(key)); }

  void set_parameters(conformance::Interpreter& interpreter, const Program& program) const {
    for (const Slot& slot : program.slots)
      if (slot.role == Role::parameter) interpreter.set(slot.name, tensor(slot.name));
  }

 private:
  SafetensorsFile file_;
};

inline Program differentiated(Program model, int64_t batch) {
  Program program = bind(std::move(model), batch);
  set_dropout(program, 0, 0);
  autodiff(program);
  return program;
}

inline double norm_of(const conformance::Tensor& x) {
  double squares = 0;
  for (int64_t i = 0; i < x.elements(); ++i) squares += x.at(i) * x.at(i);
  return std::sqrt(squares);
}

/// The gradient of the mean loss: the sum over all uses of the parameter, divided by the count.
inline conformance::Tensor whole_gradient(const conformance::Interpreter& interpreter, const Program& program, SlotId parameter,
                                          double count) {
  conformance::Tensor sum(DType::f64, program.slot(parameter).type.shape);
  for (const Slot& slot : program.slots) {
    if (slot.role != Role::gradient || slot.of != parameter) continue;
    const conformance::Tensor use = interpreter.get(slot.name);
    for (int64_t i = 0; i < sum.elements(); ++i) sum.set(i, sum.at(i) + use.at(i) / (count * program.loss_seed));
  }
  return sum;
}

/// Each parameter's gradient within `share` of the fixture's, as an L2 norm; one with a true gradient near zero within that share of a
/// millionth of the whole gradient. Returns the number of parameters.
inline int64_t expect_gradients(const conformance::Interpreter& interpreter, const Program& program, const ParityFixture& fixture,
                                double count, double share) {
  std::map<SlotId, conformance::Tensor> wanted;
  double squares = 0;
  for (SlotId id = 0; id < static_cast<SlotId>(program.slots.size()); ++id) {
    const Slot& slot = program.slot(id);
    if (slot.role != Role::parameter) continue;
    const conformance::Tensor& want = wanted[id] = fixture.tensor("gradient/" + slot.name);
    squares += std::pow(norm_of(want), 2);
  }
  for (const auto& [id, want] : wanted) {
    conformance::Tensor difference = whole_gradient(interpreter, program, id, count);
    for (int64_t i = 0; i < difference.elements(); ++i) difference.set(i, difference.at(i) - want.at(i));
    const double scale = std::max(norm_of(want), 1e-6 * std::sqrt(squares));
    EXPECT_LE(norm_of(difference) / scale, share) << program.slot(id).name;
  }
  return std::ssize(wanted);
}

}  // namespace st
