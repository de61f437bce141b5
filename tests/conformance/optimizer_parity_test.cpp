// Every optimizer against PyTorch's (Lion: the paper's) over 100 steps with recorded gradients.
#include <gtest/gtest.h>

#include <cstdio>
#include <set>
#include <string>

#include "conformance.h"
#include "ir/optimizer_state.h"
#include "pytorch_fixture.h"

namespace st::conformance {
namespace {

const TorchFixture& optimizer_fixture() {
  static const TorchFixture file("optimizers.safetensors");
  return file;
}

OpCase first_case(const TorchOptimizer& want, const TorchGradients& given) {
  OpCase c{
      .op = want.op, .name = want.name, .in = {}, .slots = {given.first.reshaped(want.shape)}, .attrs = make_attrs(want.op, want.attrs)};
  for (const OptimizerState& state : optimizer_state(c.op, c.attrs, {.dtype = DType::f32, .shape = want.shape, .layout = {}}))
    c.slots.emplace_back(state.type.dtype, state.type.shape);
  return c;
}

/// The largest difference from PyTorch's parameters relative to their largest displacement so far, "1 step 2.1e-08, ...", for README.md.
std::string follow(const TorchOptimizer& want, const TorchGradients& given, Backend& backend) {
  std::string differences;
  OpCase c = first_case(want, given);
  const int64_t n = want.shape.elements();
  for (int64_t step = 0; step < given.rates.elements(); ++step) {
    Tensor gradient(DType::f32, want.shape);
    for (int64_t i = 0; i < n; ++i) gradient.set(i, given.gradients.at(step * n + i));
    c.in = {gradient, Tensor::scalar(given.factor, DType::f32), Tensor::scalar(0, DType::boolean),
            Tensor::of({2}, {want.lr * given.rates.at(step), static_cast<double>(step + 1)}, DType::f64)};
    c.slots = run(backend, c).slots;
    if (!want.after.contains(step + 1)) continue;
    const Tensor& after = want.after.at(step + 1);
    double largest = 0, difference = 0;
    for (int64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(after.at(i) - given.first.at(i)));
    for (int64_t i = 0; i < n; ++i) difference = std::max(difference, std::abs(c.slots[0].at(i) - after.at(i)));
    char line[64];
    std::snprintf(line, sizeof line, "%s%lld: %.1e", differences.empty() ? "" : ", ", static_cast<long long>(step + 1),
                  difference / largest);
    differences += line;
    for (int64_t i = 0; i < n; ++i) {
      // One rounding of the parameter per step.
      const double rounding = 0x1p-24 * std::abs(after.at(i)) * static_cast<double>(step + 1);
      EXPECT_NEAR(c.slots[0].at(i), after.at(i), want.tolerance * largest + rounding) << "step " << step << " element " << i;
    }
  }
  return differences;
}

TEST(OptimizerParity, EachFollowsPyTorchOverAHundredSteps) {
  const TorchGradients given = optimizer_fixture().gradients();
  for (const TorchOptimizer& want : optimizer_fixture().optimizers())
    for (const BackendUnderTest& candidate : backends_and_reference()) {
      SCOPED_TRACE(want.name + " on " + candidate.name);
      RecordProperty(want.name + " on " + candidate.name, follow(want, given, *candidate.make()));
    }
}

// The optimizers that PyTorch or the paper has; adamw_8bit is tested against adamw (adamw_8bit_test.cpp).
TEST(OptimizerParity, NoOptimizerIsForgotten) {
  std::set<Op> tested = {Op::adamw_8bit};
  for (const TorchOptimizer& want : optimizer_fixture().optimizers()) tested.insert(want.op);
#define ST_OPTIMIZER(name, op, attributes, defaults, grain, help) EXPECT_TRUE(tested.contains(Op::op)) << #name;
#include "ir/optimizers.def"
#undef ST_OPTIMIZER
}

}  // namespace
}  // namespace st::conformance
