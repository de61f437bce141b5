// Every op and optimizer on operands over the whole exponent range, against the reference with fp64 storage: numbers near the ends of the
// range, subnormals, zeros of both signs, and magnitudes that differ within a row. Operands for a new row of ops.def are drawn from its own
// cases; an op whose operands must be limited has a line in in_domain().
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "base/philox.h"
#include "conformance.h"
#include "sanitized.h"

namespace st::conformance {
namespace {

/// Numbers of a storage type are below 2^(most + 1); the smallest normal one is 2^normal, the smallest of all 2^least.
struct Exponents {
  int least, normal, most;
  double largest() const { return std::ldexp(2 - std::ldexp(1.0, least - normal), most); }
};
Exponents exponents_of(DType dtype) {
  if (dtype == DType::f64) return {-1074, -1022, 1023};
  if (dtype == DType::f16) return {-24, -14, 15};
  return {dtype == DType::bf16 ? -133 : -149, -126, 127};
}

/// The range of the operands' magnitudes; mixed: everything, including zeros and the ends of the range.
enum class Spread { mixed, top, large, small, bottom };
const std::vector<Spread> kSpreads = kSanitized ? std::vector{Spread::mixed, Spread::top}
                                                : std::vector{Spread::mixed, Spread::top, Spread::large, Spread::small, Spread::bottom};
constexpr std::array kSpreadNames = {"mixed", "top", "large", "small", "bottom"};
constexpr std::array kStored = {DType::f32, DType::bf16, DType::f16};

class Numbers {
 public:
  Numbers(std::string_view name, Spread spread, DType dtype)
      : philox_(philox_of(mix(hash_name(name), static_cast<uint64_t>(spread) * 16 + static_cast<uint64_t>(dtype)))),
        spread_(spread),
        range_(exponents_of(dtype)) {}

  double next() {
    const auto words = philox_({count_++, 0, 0, 0});
    const double sign = (words[0] & 1) != 0 ? -1 : 1, fraction = 1 + static_cast<double>(uniform_of(words[1]));
    const auto [lowest, highest] = exponents();
    const double ends[] = {0, range_.largest(), std::ldexp(1.0, range_.normal), std::ldexp(1.0, range_.least), 1};
    if (spread_ == Spread::mixed && words[3] % 8 == 0) return sign * ends[words[2] % std::size(ends)];
    const int exponent = lowest + static_cast<int>(words[2] % static_cast<uint32_t>(highest - lowest + 1));
    return sign * std::min(std::ldexp(fraction, exponent), range_.largest());
  }

 private:
  std::pair<int, int> exponents() const {
    const int large = range_.most * 3 / 4, small = range_.normal * 3 / 4;
    switch (spread_) {
      case Spread::mixed:
        return {range_.least, range_.most};
      case Spread::top:
        return {range_.most - 1, range_.most};
      case Spread::large:
        return {large, large + 1};
      case Spread::small:
        return {small, small + 1};
      case Spread::bottom:
        return {range_.least, range_.normal + 1};
    }
    return {};
  }

  Philox philox_;
  Spread spread_;
  Exponents range_;
  uint32_t count_ = 0;
};

/// Ops that pass a number below the normal range on unchanged. Other ops produce none.
const std::set<Op> kHandsOn = {Op::abs,       Op::neg,  Op::clamp,         Op::relu,       Op::relu_backward, Op::minimum,
                               Op::maximum,   Op::max,  Op::where,         Op::cast,       Op::embedding,     Op::gather,
                               Op::transpose, Op::pad,  Op::broadcast_to,  Op::slice,      Op::split,         Op::concat,
                               Op::store,     Op::host, Op::host_backward, Op::tensor_part};

/// Ops that add up to 2^9 operands, or products of two: fp32 represents such a sum if it represents the sum of the magnitudes.
const std::set<Op> kSums = {
    Op::sum,   Op::softmax_backward, Op::log_softmax_backward, Op::embedding_backward, Op::gather_backward, Op::mse,    Op::bce_with_logits,
    Op::huber, Op::huber_backward,   Op::fused_linear,         Op::attention,          Op::accumulate,      Op::average};
const std::set<Op> kProducts = {Op::matmul, Op::linear, Op::fused_linear, Op::attention};

/// The value of an op's operand instead of x.
double in_domain(Op op, size_t input, double x) {
  if (input < 2 && kProducts.contains(op)) return std::copysign(std::sqrt(std::abs(x)) * 0x1p-5, x);
  if (input == 0 && (op == Op::softmax_backward || op == Op::sigmoid_backward)) return std::min(std::abs(x), 0x1p-9);
  if (input == 0 && op == Op::tanh_backward) return std::clamp(x, -1.0, 1.0);
  if (input == 0 && op == Op::log_softmax_backward) return -std::abs(x);
  if (input > 0 && op == Op::bce_with_logits) return std::min(std::abs(x), 1.0);
  if (input > 1 && (op == Op::cross_entropy || op == Op::fused_cross_entropy)) return std::min(std::abs(x), 1.0);
  if (input > 2 && op == Op::vocabulary_cross_entropy) return std::min(std::abs(x), 1.0);
  if (op == Op::mse_backward) return std::abs(x) > 1 ? x / 2 : x;  // so that x - t stays in range
  return kSums.contains(op) && std::abs(x) > 1 ? x * 0x1p-10 : x;
}

Tensor drawn(const Tensor& like, DType dtype, Numbers& numbers, Op op, size_t input) {
  Tensor x(dtype, like.shape());
  for (int64_t i = 0; i < x.elements(); ++i) x.set(i, in_domain(op, input, numbers.next()));
  return x;
}

/// A number as kernels read it (backend/README.md): zero if below the normal range, except for f16.
double counted(double x, DType stored) {
  return stored != DType::f16 && std::abs(x) < std::ldexp(1.0, exponents_of(stored).normal) ? std::copysign(0.0, x) : x;
}
Tensor widened(const Tensor& x) {
  if (!is_floating(x.dtype())) return x;
  Tensor wide(DType::f64, x.shape());
  for (int64_t i = 0; i < x.elements(); ++i) wide.set(i, counted(x.at(i), x.dtype()));
  return wide;
}
OpCase widened(const OpCase& c) {
  OpCase wide = c;
  for (auto* tensors : {&wide.in, &wide.slots})
    for (Tensor& x : *tensors) x = widened(x);
  return wide;
}

/// `got` is `want` rounded to its type, where it may be infinite. For elementwise ops each element is near; for the others the tolerance is
/// also relative to the largest, and numbers flushed below the normal range add up.
::testing::AssertionResult follows(const Tensor& got, const Tensor& want, const OpCase& c) {
  const bool alone = info_of(c.op).elementwise;
  const Tolerance& t = c.tolerance;
  const double own = got.dtype() == DType::bf16 || got.dtype() == DType::f16 ? unit_of(got.dtype()) : 0;
  const bool floating = is_floating(got.dtype());
  const double limit = floating ? exponents_of(got.dtype()).largest() : std::numeric_limits<double>::infinity();
  const double relative = floating ? ((alone ? std::max(t.each, t.largest) : 2 * t.each) + 1) * 0x1p-23 + own : 0;
  double largest = 0;
  for (int64_t i = 0; i < want.elements(); ++i)
    if (std::abs(want.at(i)) <= limit) largest = std::max(largest, std::abs(want.at(i)));
  const double flushed = got.dtype() == DType::f16 ? 0x1p-24 : floating ? 0x1p-126 : 0;
  const double least = alone ? flushed : 64 * flushed;
  const double of_all = alone ? 0 : (t.largest * 0x1p-23 + t.stored * own) * largest;
  for (int64_t i = 0; i < want.elements(); ++i) {
    const double g = got.at(i), w = want.at(i);
    if (g == w || (std::isnan(g) && std::isnan(w))) continue;
    const double allowed = relative * std::abs(w) + of_all + least;
    if (std::isinf(g) && std::signbit(g) == std::signbit(w) && std::abs(w) + allowed >= limit) continue;
    if (std::isfinite(g) && std::abs(g - std::clamp(w, -limit, limit)) <= allowed && std::abs(w) - allowed <= limit) continue;
    return ::testing::AssertionFailure() << "element " << i << " is " << g << ", wanted " << w;
  }
  return ::testing::AssertionSuccess();
}

/// One small case per set of attributes.
std::vector<const OpCase*> drawn_from(Op op, const std::function<bool(const OpCase&)>& takes) {
  std::vector<const OpCase*> cases;
  for (const OpCase& c : all_cases()) {
    if (c.op != op || c.in.empty() || c.in[0].elements() < 20 || c.in[0].elements() > 700) continue;
    const auto same = [&](const OpCase* other) { return other->attrs == c.attrs && other->in.size() == c.in.size(); };
    if (takes(c) && std::none_of(cases.begin(), cases.end(), same)) cases.push_back(&c);
  }
  return cases;
}

bool stores(const OpCase& c, DType dtype) { return std::find(c.dtypes.begin(), c.dtypes.end(), dtype) != c.dtypes.end(); }

std::vector<Tensor> results(Backend& backend, const OpCase& c) {
  Result result = run(backend, c);
  result.out.insert(result.out.end(), result.slots.begin(), result.slots.end());
  return result.out;
}

bool has_no_subnormal(const Tensor& x) {
  for (int64_t i = 0; i < x.elements() && is_floating(x.dtype()); ++i)
    if (x.at(i) != 0 && counted(x.at(i), x.dtype()) == 0) return false;
  return true;
}

class Extremes : public ::testing::TestWithParam<Op> {
 protected:
  void SetUp() override {
    for (const BackendUnderTest& candidate : backends()) backends_.emplace_back(candidate.name, candidate.make());
  }

  std::vector<std::pair<std::string, std::unique_ptr<Backend>>> backends_;
  std::unique_ptr<Backend> reference_ = make_reference();
};
class GradientExtremes : public Extremes {};

TEST_P(Extremes, AgreeWithReference) {
  // The statistics of a backward op come from its forward op: see GradientExtremes.
  const auto takes = [](const OpCase& c) {
    return c.statistics.empty() && c.op != Op::attention_backward && (c.op != Op::average || c.in[2].at(1) > 1);
  };
  for (const OpCase* c : drawn_from(GetParam(), takes))
    for (const DType dtype : kStored)
      for (const Spread spread : kSpreads) {
        if (!stores(*c, dtype) || (dtype != DType::f32 && !c->slots.empty())) continue;
        Numbers numbers(c->name, spread, dtype);
        OpCase made = *c;
        if (c->op == Op::fused_linear) made.tolerance = {.largest = 64, .stored = 16};  // column sums cancel
        for (auto* tensors : {&made.in, &made.slots})
          for (size_t i = 0; i < tensors->size(); ++i)
            if (Tensor& x = (*tensors)[i]; x.dtype() == DType::f32) x = drawn(x, dtype, numbers, c->op, i);
        const std::vector<Tensor> want = results(*reference_, stores(*c, DType::f64) || !c->slots.empty() ? widened(made) : made);
        for (const auto& [name, backend] : backends_) {
          SCOPED_TRACE(text(c->name, " on ", name, " in ", dtype, ", ", kSpreadNames[static_cast<size_t>(spread)]));
          const std::vector<Tensor> got = results(*backend, made);
          for (size_t o = 0; o < got.size(); ++o) {
            EXPECT_TRUE(follows(got[o], want[o], made)) << "result " << o;
            EXPECT_TRUE(kHandsOn.contains(c->op) || has_no_subnormal(got[o])) << "result " << o;
          }
        }
      }
}

TEST_P(GradientExtremes, AgreeWithReference) {
  for (const OpCase* c : drawn_from(GetParam(), [](const OpCase& each) { return !each.parameters.empty(); }))
    for (const Spread spread : kSpreads) {
      Numbers numbers(c->name, spread, DType::f32);
      OpCase made = *c;
      // Near the end of the range, rounding of the scores makes the gradients of q and k arbitrary.
      const size_t input = c->op == Op::attention ? 2 : 0;
      made.in[input] = drawn(made.in[input], DType::f32, numbers, c->op, input);
      made.tolerance = {.each = 16, .largest = 64};
      const OpCase wide = widened(made);
      std::vector<Tensor> seeds, wide_seeds;
      Numbers moderate(c->name, Spread::mixed, DType::f16);
      for (const int32_t o : c->seeded) {
        const Tensor y = run(*reference_, made).out[static_cast<size_t>(o)];
        seeds.push_back(drawn(y, y.dtype(), moderate, Op::tanh_backward, 0));
        wide_seeds.push_back(widened(seeds.back()));
      }
      const auto gradients = [&](Backend& backend, const OpCase& of, const std::vector<Tensor>& seeded) {
        const Program program = loss_program(of, seeded);
        Interpreter interpreter(backend, program);
        for (size_t i = 0; i < of.in.size(); ++i) interpreter.set(text("in.", i), of.in[i]);
        for (size_t i = 0; i < seeded.size(); ++i) interpreter.set(text("seed.", c->seeded[i]), seeded[i]);
        interpreter.run(Phase::forward);
        interpreter.run(Phase::backward);
        std::vector<Tensor> all;
        for (const int32_t i : c->parameters) all.push_back(interpreter.get(text("gradient.in.", i)));
        return all;
      };
      const std::vector<Tensor> want = gradients(*reference_, wide, wide_seeds);
      for (const auto& [name, backend] : backends_) {
        const std::vector<Tensor> got = gradients(*backend, made, seeds);
        for (size_t i = 0; i < got.size(); ++i)
          EXPECT_TRUE(follows(got[i], want[i], made))
              << c->name << " on " << name << ", " << kSpreadNames[static_cast<size_t>(spread)] << ", d input " << c->parameters[i];
      }
    }
}

// --- optimizers

class OptimizerExtremes : public Extremes {};

/// The case as the first step of a run: empty states, no clip.
OpCase first_step(const OpCase& c) {
  OpCase made = c;
  made.attrs = make_attrs(c.op, c.attrs);
  made.attrs.set("clip_value", 0.0);
  made.in[1] = Tensor::scalar(1, DType::f32);
  made.in[3] = Tensor::of({2}, {1e-3, 1}, DType::f64);
  for (size_t s = 1; s < made.slots.size(); ++s) made.slots[s] = Tensor(c.slots[s].dtype(), c.slots[s].shape());
  return made;
}

bool updates(const OpCase& c) { return c.in.size() == 4 && c.in[2].at(0) == 0 && c.in[3].at(1) == 1; }

TEST_P(OptimizerExtremes, FollowTheReferenceAndStayFinite) {
  for (const OpCase* c : drawn_from(GetParam(), updates))
    for (const DType dtype : kStored)
      for (const Spread spread : kSpreads) {
        Numbers numbers(c->name, spread, dtype);
        OpCase first = first_step(*c);
        for (const auto& [name, backend] : backends_) {
          OpCase made = first;
          for (const double number : {1.0, 2.0, 3.0}) {
            made.in[0] = drawn(c->in[0], dtype, numbers, c->op, 0);
            made.in[3].set(1, number);
            const Result want = run(*reference_, made), got = run(*backend, made);
            for (size_t s = 0; s < got.slots.size(); ++s) {
              const bool codes = got.slots[s].dtype() == DType::u8;  // may fall on either side of a bin's edge
              EXPECT_TRUE(codes || follows(got.slots[s], want.slots[s], *c))
                  << text(c->name, " on ", name, " in ", dtype, ", ") << kSpreadNames[static_cast<size_t>(spread)] << ", slot " << s
                  << " in step " << number;
              for (int64_t i = 0; i < got.slots[s].elements() && !codes; ++i)
                ASSERT_TRUE(std::isfinite(got.slots[s].at(i))) << c->name << " on " << name << ", slot " << s << " in step " << number;
            }
            made.slots = got.slots;
          }
        }
      }
}

// The first step with gradients of one magnitude: except for sgd it is the same for any magnitude, which fp64 computes without limits.
TEST_P(OptimizerExtremes, TakeTheFirstStepOfTheFormula) {
  for (const OpCase* c : drawn_from(GetParam(), updates))
    for (const double magnitude : {1e38, 1e25, 1e-10}) {
      OpCase made = first_step(*c);
      if (made.attrs.has("epsilon")) made.attrs.set("epsilon", 1e-20);
      Numbers signs(c->name, Spread::large, DType::f16);
      for (int64_t i = 0; i < made.in[0].elements(); ++i) made.in[0].set(i, std::copysign(magnitude, signs.next()));
      OpCase wide = widened(made);
      wide.in[1] = made.in[1];
      const Tensor want = run(*reference_, wide).slots[0];
      for (const auto& [name, backend] : backends_)
        EXPECT_TRUE(follows(run(*backend, made).slots[0], want, *c)) << c->name << " on " << name << ", " << magnitude;
    }
}

// Where a second moment is flushed to zero, a step is not as large as epsilon is small.
TEST_P(OptimizerExtremes, TakeNoLongStepByTheLeastEpsilon) {
  for (const OpCase* c : drawn_from(GetParam(), updates))
    for (const double magnitude : {0x1p-40, 0x1p-59, 0x1p-64, 0x1p-80, 0x1p-126, 0.0}) {
      OpCase made = first_step(*c);
      for (const char* epsilon : {"epsilon", "ns_epsilon"})
        if (made.attrs.has(epsilon)) made.attrs.set(epsilon, 1e-300);
      for (int64_t i = 0; i < made.in[0].elements(); ++i) {
        made.in[0].set(i, i % 2 == 0 ? magnitude : 0);
        made.slots[0].set(i, 1);
      }
      for (const auto& [name, backend] : backends_) {
        const Tensor p = run(*backend, made).slots[0];
        for (int64_t i = 0; i < p.elements(); ++i) ASSERT_NEAR(p.at(i), 1, 0.02) << c->name << " on " << name << ", " << magnitude;
      }
    }
}

std::string name_of_op(const ::testing::TestParamInfo<Op>& tested) { return std::string(name_of(tested.param)); }
std::vector<Op> ops_that(const std::function<bool(Op)>& takes) {
  std::vector<Op> all;
  for (int32_t op = 0; op < kOps; ++op)
    if (takes(static_cast<Op>(op))) all.push_back(static_cast<Op>(op));
  return all;
}
bool is_optimizer(Op op) { return info_of(op).shape_rule == "optimizer"; }

INSTANTIATE_TEST_SUITE_P(All, Extremes,
                         ::testing::ValuesIn(ops_that([](Op op) { return !is_view(op) && !info_of(op).exchange && !is_optimizer(op); })),
                         name_of_op);
INSTANTIATE_TEST_SUITE_P(All, GradientExtremes,
                         ::testing::Values(Op::layer_norm, Op::rms_norm, Op::softmax, Op::log_softmax, Op::attention, Op::cross_entropy,
                                           Op::bce_with_logits, Op::mse, Op::huber, Op::gelu, Op::silu, Op::tanh, Op::sigmoid, Op::exp),
                         name_of_op);
INSTANTIATE_TEST_SUITE_P(All, OptimizerExtremes, ::testing::ValuesIn(ops_that(is_optimizer)), name_of_op);

}  // namespace
}  // namespace st::conformance
