// Losses of a prediction and a target of the same shape.
#include "conformance.h"

namespace st::conformance {
namespace {

Tensor a_normal(Suite& s, const Shape& shape) { return s.normal(shape); }
Tensor share(Suite& s, const Shape& shape) { return s.uniform(shape, 0, 1); }

struct PairedLoss {
  Op forward, backward;
  Tensor (*target)(Suite&, const Shape&);
  std::vector<int32_t> parameters;
  std::vector<Attrs> attrs;
};

const PairedLoss kLosses[] = {
    {Op::bce_with_logits, Op::bce_with_logits_backward, share, {0}, {Attrs{}}},
    {Op::mse, Op::mse_backward, a_normal, {0, 1}, {Attrs{}}},
    {Op::huber, Op::huber_backward, a_normal, {0, 1}, {Attrs{}, Attrs{{"delta", 0.3}}}},
};

void declare_forward(const PairedLoss& loss, Suite& s) {
  const auto declare = [&](OpCase& c) {
    if (!c.parameters.empty()) c.parameters = loss.parameters;
    if (c.in[0].elements() > 10'000) c.dtypes = {DType::f32, DType::bf16, DType::f16};  // in f64 the order of so many terms is visible
  };
  for (const Attrs& attrs : loss.attrs)
    for (const Shape& shape : shapes()) {
      declare(s.add({s.normal(shape, 3), loss.target(s, shape)}, attrs));
      declare(s.add({s.normal(shape), loss.target(s, shape), s.uniform(shape, 0, 2)}, attrs));
    }
}

void declare_backward(const PairedLoss& loss, Suite& s) {
  const Tensor dsum = Tensor::scalar(0.37, DType::f64);
  for (const Attrs& attrs : loss.attrs)
    for (const Shape& shape : shapes()) {
      s.add({s.normal(shape, 3), loss.target(s, shape), dsum}, attrs);
      s.add({s.normal(shape), loss.target(s, shape), dsum, s.uniform(shape, 0, 2)}, attrs);
    }
}

const std::vector<Cases> kPairedLossCases = [] {
  std::vector<Cases> all;
  for (const PairedLoss& loss : kLosses) {
    // An fp64 sum of terms that may be fp32. In backward, sigmoid(x) - t cancels: relative to the largest.
    all.emplace_back(loss.forward, Tolerance{.each = 4}, [&loss](Suite& s) { declare_forward(loss, s); });
    all.emplace_back(loss.backward, Tolerance{.each = 4, .largest = 4}, [&loss](Suite& s) { declare_backward(loss, s); });
  }
  return all;
}();

}  // namespace
}  // namespace st::conformance
