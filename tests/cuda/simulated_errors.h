// Shared by tests of kernels that have not the cpu's bits: their error against fp64 is at most 1.5 times the cpu's and a unit in the last
// place.
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "../sanitized.h"
#include "backend/reference/elements.h"
#include "simulated_kernels.h"

namespace st::cuda {

/// An operand's values, rounded to its type.
struct Values {
  DType dtype;
  Shape shape;
  std::vector<double> at;
};

inline Values uniform_values(DType dtype, const Shape& shape, double low, double high, uint64_t seed) {
  std::mt19937_64 random(seed);
  Values made = {dtype, shape, {}};
  uint64_t bits = 0;
  const Operand one = {address_of(&bits), dtype, Shape{}};
  for (int64_t i = 0; i < shape.elements(); ++i) {
    reference::set(one, 0, low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53);
    made.at.push_back(reference::get(one, 0));
  }
  return made;
}

class ErrorTest : public KernelTest {
 protected:
  ErrorTest() : KernelTest(Order::late) {}

  enum class By { reference, cpu, device };

  /// The outputs of types `ys`. The reference computes in fp64.
  std::vector<Values> results(By by, Op op, const std::vector<Tensor>& ys, const std::vector<Values>& xs, const Attrs& given) {
    const Attrs attrs = make_attrs(op, given);
    const auto type_of = [&](DType dtype) { return by == By::reference && is_floating(dtype) ? DType::f64 : dtype; };
    std::vector<Bytes> memory;
    std::vector<Operand> in, out;
    const auto add = [&](std::vector<Operand>& to, DType dtype, const Shape& shape) {
      memory.emplace_back(shape.elements() * bytes_of(type_of(dtype)));
      to.push_back({address_of(memory.back().data()), type_of(dtype), shape});
    };
    for (const Values& x : xs) {
      add(in, x.dtype, x.shape);
      for (size_t i = 0; i < x.at.size(); ++i) reference::set(in.back(), static_cast<int64_t>(i), x.at[i]);
    }
    for (const Tensor& y : ys) add(out, y.dtype, y.shape);
    Call call;
    call.in = in;
    call.out = out;
    call.attrs = &attrs;
    if (by == By::device) run_on_device(op, call);
    if (by == By::cpu) run_on_cpu(op, call);
    if (by == By::reference) run_on_reference(op, call);
    std::vector<Values> made;
    for (size_t i = 0; i < ys.size(); ++i) {
      memory[xs.size() + i].taken();
      made.push_back({ys[i].dtype, ys[i].shape, {}});
      for (int64_t e = 0; e < ys[i].shape.elements(); ++e) made.back().at.push_back(reference::get(out[i], e));
    }
    return made;
  }

  /// `each`: in units of each element; else in units of the largest, for sums.
  static double worst_error(const Values& made, const Values& exact, bool each) {
    const int digits = format_of(made.dtype).digits;
    double largest = 0, worst = 0;
    for (const double x : exact.at) largest = std::isfinite(x) ? std::max(largest, std::abs(x)) : largest;
    for (size_t i = 0; i < exact.at.size(); ++i) {
      if (made.at[i] == exact.at[i]) continue;
      const double of = each ? std::abs(exact.at[i]) : largest, least = made.dtype == DType::f16 ? -14 : -126;
      const double unit = std::ldexp(1.0, static_cast<int>(std::max(std::floor(std::log2(of)), least)) - digits);
      const double error = std::abs(made.at[i] - exact.at[i]) / unit;
      worst = error <= worst ? worst : std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
    }
    return worst;
  }

  /// Also: the same bits in a second run, which a sanitizer's build leaves out. least_allowed: units that are allowed if the cpu's error is
  /// 0, or if it does not compute the type.
  void expect_error_of_the_cpu(Op op, const std::vector<Tensor>& ys, const std::vector<Values>& xs, const Attrs& attrs, bool each,
                               bool cpu_has_it = true, double least_allowed = 1) {
    const std::vector<Values> exact = results(By::reference, op, ys, xs, attrs), made = results(By::device, op, ys, xs, attrs);
    const std::vector<Values> again = kSanitized ? std::vector<Values>() : results(By::device, op, ys, xs, attrs);
    const std::vector<Values> by_cpu = cpu_has_it ? results(By::cpu, op, ys, xs, attrs) : exact;
    for (size_t i = 0; i < ys.size(); ++i) {
      const std::string where = text(name_of(op), " in ", ys[i].dtype, " ", ys[i].shape, ", output ", i);
      const double of_cpu = worst_error(by_cpu[i], exact[i], each);
      EXPECT_LE(worst_error(made[i], exact[i], each), 1.5 * of_cpu + least_allowed) << where << ", the cpu's error is " << of_cpu;
      if (!kSanitized) EXPECT_TRUE(made[i].at == again[i].at) << where;
    }
  }

  void run_on_reference(Op op, Call call) {
    Bytes workspace(need(profile_of(*reference_, 1), op, call));
    call.workspace = address_of(workspace.data());
    call.workers = &workers_;
    reference_->kernels()[static_cast<size_t>(op)].run(call);
    workspace.taken();
  }

 private:
  std::unique_ptr<Backend> reference_ = make_reference_backend();
};

}  // namespace st::cuda
