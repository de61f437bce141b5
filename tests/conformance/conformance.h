// The driver of the conformance suite. Each file declares cases of some ops. conformance_test.cpp runs every case on every backend: against
// `reference`, with other numbers of threads, in place, in other dtypes, and its gradient against finite differences. pytorch_test.cpp does
// the same with PyTorch's values.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "interpreter.h"
#include "ir/build.h"
#include "tensor.h"

namespace st::conformance {

using MakeBackend = std::unique_ptr<Backend> (*)();

struct BackendUnderTest {
  std::string name;
  MakeBackend make;
};

/// Every backend that is compared with `reference`. Add a new device here.
const std::vector<BackendUnderTest>& backends();
std::unique_ptr<Backend> make_reference();
std::vector<BackendUnderTest> backends_and_reference();

/// One op on fixed operands.
struct OpCase {
  Op op{};
  std::string name;  // unique, valid in GoogleTest
  std::vector<Tensor> in = {};
  std::vector<Tensor> slots = {};  // for ops that write slots
  Attrs attrs = {};
  Tolerance tolerance = {};              // between a backend and `reference`, both from the same inputs
  std::vector<int32_t> parameters = {};  // inputs whose gradient is checked by finite differences; empty: not smooth here
  std::vector<int32_t> seeded = {0};     // outputs that the loss uses
  std::vector<DType> dtypes = {DType::f32, DType::f64, DType::bf16, DType::f16};  // storage of the f32 inputs
  std::vector<int32_t> statistics = {};  // inputs that 16-bit storage keeps in f32: mean, rstd, lse, a norm's gamma
};

/// The cases that one op's file declares.
class Suite {
 public:
  Suite(Op op, Tolerance tolerance, std::vector<OpCase>& cases);

  /// For a differentiable op, the gradient of each floating input is checked if all inputs together are small enough.
  OpCase& add(std::vector<Tensor> in, const Attrs& attrs = {});
  /// For values at which the op is not smooth or not finite: forward only.
  OpCase& add_special(std::vector<Tensor> in, const Attrs& attrs = {});
  /// For operands of many tasks: forward only, in f32. Results that are not exact are compared relative to the largest element: a sum in
  /// lanes of at most 1024 / 64 terms and a tree stays below that.
  OpCase& add_large(std::vector<Tensor> in, const Attrs& attrs = {});

  // Fixed pseudo-random operands, new ones at each call.
  Tensor normal(const Shape& shape, double deviation = 1, double mean = 0);
  Tensor uniform(const Shape& shape, double low, double high);
  Tensor integers(const Shape& shape, int64_t high, DType dtype = DType::i32);  // 0..high-1
  Tensor flags(const Shape& shape);

 private:
  uint64_t next_key();

  Op op_;
  Tolerance tolerance_;
  std::vector<OpCase>& cases_;
  uint64_t drawn_ = 0;
};

/// Registers an op's cases; `declare` runs when the list is first requested.
class Cases {
 public:
  Cases(Op op, Tolerance tolerance, std::function<void(Suite&)> declare);
};

const std::vector<OpCase>& all_cases();

/// Parameters for a suite of the cases that can test a property, and their names.
std::vector<const OpCase*> cases_that(const std::function<bool(const OpCase&)>& takes);
inline std::string name_of_case(const ::testing::TestParamInfo<const OpCase*>& tested) { return tested.param->name; }

/// Whether the op's row has a gradient rule that is not zero.
bool has_gradient(Op op);

/// {}, {1}, {3}, {37}, {129}, empty ones, several dimensions, and one of five tasks with a short last one.
const std::vector<Shape>& shapes();
/// Rows shorter than a task, and rows longer than a task.
const std::vector<Shape>& large_rows();
/// Pairs of shapes that broadcast: rows, columns, scalars, both ways, empty ones.
const std::vector<std::pair<Shape, Shape>>& broadcast_pairs();
/// NaN, infinities, zeros of both signs, large and small numbers.
Tensor special_values();

/// The case with its floating inputs in another dtype.
OpCase in_dtype(const OpCase& c, DType dtype);

struct Result {
  std::vector<Tensor> out, slots;
};
/// Runs the op directly through the backend's table. alias >= 0: output 0 shares memory with that input. `displaced`: bytes from an aligned
/// address to each operand.
Result run(Backend& backend, const OpCase& c, int threads = 2, int32_t alias = -1, int64_t displaced = 0);

Result run_on_reference(Op op, const std::vector<Tensor>& in, const Attrs& attrs = {}, const std::vector<Tensor>& slots = {});

/// loss = sum over `seeded` outputs of sum(output * seed), with autodiff's backward section. Slots "in.<i>", "seed.<i>"; outputs "out.<i>".
/// The inputs in `parameters` are parameters of the program, so their gradients are in "gradient.in.<i>".
Program loss_program(const OpCase& c, const std::vector<Tensor>& seeds);

}  // namespace st::conformance
