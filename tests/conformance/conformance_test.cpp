// Every case of every op: the backends against `reference`, and the gradients against finite differences.
#include "conformance.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "../device/tested_device.h"
#include "../sanitized.h"
#include "../thrown_error.h"
#include "comparison.h"
#include "ir/verify.h"

namespace st::conformance {
namespace {

// One suite per property, with the cases that can test it.
class Kernels : public ::testing::TestWithParam<const OpCase*> {};
class Elementwise : public ::testing::TestWithParam<const OpCase*> {};
class Windows : public ::testing::TestWithParam<const OpCase*> {};
class Gradients : public ::testing::TestWithParam<const OpCase*> {};

std::vector<DType> dtypes_of(const OpCase& c) {
  if (c.dtypes.size() == 1) return c.dtypes;  // declared for one storage type
  const bool floating = std::any_of(c.in.begin(), c.in.end(), [](const Tensor& x) { return x.dtype() == DType::f32; });
  if (!floating) return {DType::f32};
  return c.dtypes;
}

/// Elements of the inputs; 0: many.
int64_t size_of(const OpCase& c) {
  int64_t elements = 0;
  for (const Tensor& x : c.in) elements += x.elements();
  return elements <= 5000 ? elements : 0;
}

/// Whether it is the largest small case of its op in fp64.
bool stands_for_op_in_f64(const OpCase& c) {
  static const std::map<Op, const OpCase*> all = [] {
    std::map<Op, const OpCase*> found;
    for (const OpCase& each : all_cases()) {
      if (std::ranges::count(dtypes_of(each), DType::f64) == 0) continue;
      const OpCase*& at = found.try_emplace(each.op, &each).first->second;
      if (size_of(each) > size_of(*at)) at = &each;
    }
    return found;
  }();
  const auto found = all.find(c.op);
  return found != all.end() && found->second == &c;
}

/// Under ASan the cpu's kernels of fp64 are not checked (CMakeLists.txt of the repository's root), so a sanitizer's build runs one case of
/// each op, for the reference's.
bool runs_in(const OpCase& c, DType dtype) { return !st::kSanitized || dtype != DType::f64 || stands_for_op_in_f64(c); }
bool has_kernel(const OpCase& c) {
  return !is_view(c.op) && std::any_of(c.dtypes.begin(), c.dtypes.end(), [&](DType dtype) { return runs_in(c, dtype); });
}
bool may_run_in_place(const OpCase& c) { return has_kernel(c) && info_of(c.op).elementwise && !c.in.empty(); }
bool has_windows(const OpCase& c) {  // dropout's mask depends on the position
  return may_run_in_place(c) && c.op != Op::dropout && c.in[0].elements() > 1000 &&
         std::all_of(c.in.begin(), c.in.end(), [&](const Tensor& x) { return x.shape() == c.in[0].shape(); });
}
bool is_smooth(const OpCase& c) { return !c.parameters.empty(); }

void expect_near(const std::vector<Tensor>& got, const std::vector<Tensor>& want, const Tolerance& tolerance, DType computed_in) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(near(got[i], want[i], tolerance, computed_in)) << "output " << i;
}

/// Products and attention in fp64 are the reference's and a GPU's: the cpu has no kernels of them.
bool is_refused(const Backend& backend, Op op, DType dtype) {
  constexpr Op kNotOnTheCpu[] = {Op::matmul, Op::linear, Op::fused_linear, Op::pack, Op::attention};
  return dtype == DType::f64 && backend.name() == "cpu" && std::ranges::count(kNotOnTheCpu, op) > 0;
}

/// A device may read weights as they are; every other op it has.
bool packs_nothing(const Backend& backend, const OpCase& c) { return c.op == Op::pack && !backend.has_kernel(Op::pack); }

TEST(Conformance, EveryOpHasACase) {
  std::set<Op> seen;
  for (const OpCase& c : all_cases()) seen.insert(c.op);
  for (int32_t op = 0; op < kOps; ++op) {
    EXPECT_TRUE(seen.contains(static_cast<Op>(op)) || info_of(static_cast<Op>(op)).exchange)
        << name_of(static_cast<Op>(op)) << " is in ops.def but no file of tests/conformance has a case";
  }
}

TEST(Conformance, EveryGradientIsCheckedByFiniteDifferences) {
  std::set<Op> seen;
  for (const OpCase& c : all_cases())
    if (is_smooth(c)) seen.insert(c.op);
  for (int32_t i = 0; i < kOps; ++i) {
    const Op op = static_cast<Op>(i);
    if (op == Op::vocabulary_cross_entropy) continue;  // its gradient goes through the terms too: vocabulary_cross_entropy_test.cpp
    if (is_of_values(op) || op == Op::tensor_share || op == Op::tensor_part) continue;  // it needs other ranks: equivalence/tensor_test.cpp
    EXPECT_TRUE(!has_gradient(op) || seen.contains(op)) << name_of(op);
  }
}

TEST_P(Kernels, AgreeWithReference) {
  const auto reference = make_reference();
  if (is_view(GetParam()->op)) GTEST_SKIP() << "a view: it has no kernel; its values are in pytorch_test.cpp";
  for (const DType dtype : dtypes_of(*GetParam())) {
    if (!runs_in(*GetParam(), dtype)) continue;
    const OpCase c = in_dtype(*GetParam(), dtype);
    std::optional<Result> want;
    for (const BackendUnderTest& candidate : backends()) {
      SCOPED_TRACE(text(candidate.name, " in ", dtype));
      const auto backend = candidate.make();
      if (packs_nothing(*backend, c)) continue;
      if (is_refused(*backend, c.op, dtype)) {
        EXPECT_TRUE(is_error(error_of([&] { run(*backend, c); }), Code::unsupported, {"got f64"}));
        continue;
      }
      const Result got = run(*backend, c);
      if (!want) want = run(*reference, c);
      expect_near(got.out, want->out, c.tolerance, dtype);
      expect_near(got.slots, want->slots, c.tolerance, dtype);
    }
  }
}

TEST_P(Kernels, HaveTheSameBitsOnAnyNumberOfThreads) {
  for (const BackendUnderTest& candidate : backends()) {
    const auto backend = candidate.make();
    if (packs_nothing(*backend, *GetParam())) continue;
    const Result one = run(*backend, *GetParam(), 1);
    // A device's kernels know nothing of the host's threads: there a second run is enough.
    constexpr int kThreads[] = {2, 3, 5};
    for (const int threads : std::span(kThreads).first(tested_device ? 1 : 3)) {
      const Result many = run(*backend, *GetParam(), threads);
      EXPECT_EQ(many.out, one.out) << candidate.name << " with " << threads << " threads";
      EXPECT_EQ(many.slots, one.slots) << candidate.name << " with " << threads << " threads";
    }
  }
}

TEST_P(Elementwise, GivesTheSameBitsInPlace) {
  const OpCase& c = *GetParam();
  for (const BackendUnderTest& candidate : backends_and_reference()) {
    const auto backend = candidate.make();
    const Result apart = run(*backend, c);
    for (size_t i = 0; i < c.in.size(); ++i) {
      if (apart.out.size() != 1 || c.in[i].dtype() != apart.out[0].dtype() || c.in[i].shape() != apart.out[0].shape()) continue;
      EXPECT_EQ(run(*backend, c, 2, static_cast<int32_t>(i)).out, apart.out) << candidate.name << ", output in input " << i;
    }
  }
}

/// `n` elements from `from` on.
Tensor window(const Tensor& x, int64_t from, int64_t n) {
  const int64_t width = bytes_of(x.dtype());
  Tensor part(x.dtype(), {n});
  std::copy_n(x.bytes().begin() + from * width, n * width, part.bytes().begin());
  return part;
}

TEST_P(Windows, HaveTheBitsOfTheWholeAtAnyOffset) {
  for (const BackendUnderTest& candidate : backends()) {
    const auto backend = candidate.make();
    const Tensor whole = run(*backend, *GetParam(), 1).out[0];
    for (const int64_t from : {0, 1, 5, 31})
      for (const int64_t n : {1, 2, 3, 7, 15, 16, 17, 31, 33, 100}) {
        OpCase c = *GetParam();
        for (Tensor& x : c.in) x = window(x, from, n);
        // At an address to which no wide vector is aligned.
        EXPECT_EQ(run(*backend, c, 1, -1, 16).out[0], window(whole, from, n)) << candidate.name << ", " << n << " elements from " << from;
      }
  }
}

/// d loss / d element by central differences, in fp64 on `reference`.
Tensor central_differences(Interpreter& interpreter, const Program& program, const std::string& slot, const Tensor& at) {
  // The step balances the rounding of the loss (1e-16 / h) against the cubic term (h^2): both stay below 1e-8 of the largest element here.
  constexpr double kStep = 1e-5;
  Tensor gradient(DType::f64, at.shape());
  const auto loss_at = [&](const Tensor& x) {
    interpreter.set(slot, x);
    interpreter.run(Phase::forward);
    return interpreter.value(program.loss_sum).at(0);
  };
  for (int64_t i = 0; i < at.elements(); ++i) {
    Tensor above = at, below = at;
    above.set(i, at.at(i) + kStep);
    below.set(i, at.at(i) - kStep);
    gradient.set(i, (loss_at(above) - loss_at(below)) / (2 * kStep));
  }
  interpreter.set(slot, at);
  return gradient;
}

TEST_P(Gradients, AreThoseOfFiniteDifferences) {
  const OpCase c = in_dtype(*GetParam(), DType::f64);
  const auto reference = make_reference();

  std::vector<Tensor> seeds;
  std::vector<OpCase> no_cases;
  Suite random(c.op, {}, no_cases);
  const std::vector<Tensor> out =
      is_view(c.op) ? std::vector<Tensor>{c.in[0].reshaped(Shape(c.attrs.ints("shape")))} : run(*reference, c).out;
  for (const int32_t i : c.seeded) {
    const Tensor& y = out[static_cast<size_t>(i)];
    seeds.push_back(random.normal(y.shape()).to(y.dtype()));
  }
  const Program program = loss_program(c, seeds);
  verify(program, "autodiff");
  Interpreter interpreter(*reference, program);
  for (size_t i = 0; i < c.in.size(); ++i) interpreter.set(text("in.", i), c.in[i]);
  for (size_t i = 0; i < seeds.size(); ++i) interpreter.set(text("seed.", c.seeded[i]), seeds[i]);
  interpreter.run(Phase::forward);
  interpreter.run(Phase::backward);

  for (const int32_t i : c.parameters) {
    const Tensor got = interpreter.get(text("gradient.in.", i));
    const Tensor want = central_differences(interpreter, program, text("in.", i), c.in[static_cast<size_t>(i)]);
    // Finite differences are accurate to about 1e-9 here; the kernels work in fp64 throughout (mean, rstd and lse too) and are far better.
    double largest = 1;
    for (int64_t k = 0; k < want.elements(); ++k) largest = std::max(largest, std::abs(want.at(k)));
    for (int64_t k = 0; k < want.elements(); ++k) {
      EXPECT_NEAR(got.at(k), want.at(k), 1e-8 * largest) << "d loss / d input " << i << " element " << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Kernels, ::testing::ValuesIn(cases_that(has_kernel)), name_of_case);
INSTANTIATE_TEST_SUITE_P(All, Elementwise, ::testing::ValuesIn(cases_that(may_run_in_place)), name_of_case);
INSTANTIATE_TEST_SUITE_P(All, Windows, ::testing::ValuesIn(cases_that(has_windows)), name_of_case);
INSTANTIATE_TEST_SUITE_P(All, Gradients, ::testing::ValuesIn(cases_that(is_smooth)), name_of_case);

}  // namespace
}  // namespace st::conformance
