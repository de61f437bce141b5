// Forward and backward against PyTorch's values, on every backend and on `reference`.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "comparison.h"
#include "ir/verify.h"
#include "pytorch_fixture.h"

namespace st::conformance {
namespace {

const TorchFixture& op_fixture() {
  static const TorchFixture file("ops.safetensors");
  return file;
}

const std::vector<TorchCase>& torch_cases() {
  static const std::vector<TorchCase> all = op_fixture().cases();
  return all;
}

std::vector<const TorchCase*> pointers() {
  std::vector<const TorchCase*> all;
  for (const TorchCase& c : torch_cases()) all.push_back(&c);
  return all;
}

/// Expected values are fp64, rounded once. fp32 sums of up to 129 random terms are off by some units of the largest element, and inputs of
/// 50 to 500 to an exponential magnify their own rounding: 1e-5 covers all of that, and a wrong formula misses it by far. In fp64 the same
/// reasoning gives 1e-12. A loss's sum is fp64 of fp32 terms.
double tolerance_of(const TorchCase& c, const Tensor& got) {
  if (!is_floating(got.dtype())) return 0;
  if (c.tolerance > 0) return c.tolerance;
  return got.dtype() == DType::f64 && c.op_case.in[0].dtype() == DType::f64 ? 1e-12 : 1e-5;
}

/// A backend may refuse f64, with the code unsupported; nothing else. False: it did.
bool run_unless_refused(Interpreter& interpreter, Phase phase, const TorchCase& c) {
  try {
    interpreter.run(phase);
    return true;
  } catch (const Error& error) {
    if (c.op_case.in[0].dtype() != DType::f64 || error.code() != Code::unsupported) throw;
    return false;
  }
}

class PyTorch : public ::testing::TestWithParam<const TorchCase*> {};

TEST_P(PyTorch, AgreesForwardAndBackward) {
  const TorchCase& c = *GetParam();
  const Program program = loss_program(c.op_case, c.seeds);
  if (!c.gradients.empty()) verify(program, "autodiff");
  for (const BackendUnderTest& candidate : backends_and_reference()) {
    SCOPED_TRACE(candidate.name);
    const auto backend = candidate.make();
    Interpreter interpreter(*backend, program);
    for (size_t i = 0; i < c.op_case.in.size(); ++i) interpreter.set(text("in.", i), c.op_case.in[i]);
    for (size_t i = 0; i < c.seeds.size(); ++i) interpreter.set(text("seed.", c.op_case.seeded[i]), c.seeds[i]);
    if (!run_unless_refused(interpreter, Phase::forward, c)) continue;
    for (size_t i = 0; i < c.out.size(); ++i) {
      const Tensor got = interpreter.value(program.outputs[i].value);
      EXPECT_TRUE(near(got, c.out[i], tolerance_of(c, got))) << "output " << i;
    }
    if (c.gradients.empty()) continue;
    if (!run_unless_refused(interpreter, Phase::backward, c)) continue;
    for (size_t i = 0; i < c.gradients.size(); ++i) {
      const Tensor got = interpreter.get(text("gradient.in.", c.op_case.parameters[i]));
      EXPECT_TRUE(near(got, c.gradients[i], tolerance_of(c, got))) << "d loss / d input " << c.op_case.parameters[i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, PyTorch, ::testing::ValuesIn(pointers()), [](const auto& tested) { return tested.param->op_case.name; });

TEST(PyTorchFixture, SaysWhichPyTorchMadeIt) {
  EXPECT_TRUE(op_fixture().torch_version().starts_with("2.")) << op_fixture().torch_version();
}

}  // namespace
}  // namespace st::conformance
