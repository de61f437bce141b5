// Each backward op against central differences of its forward op, in f64.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "reference_run.h"

namespace st {
namespace {

struct Case {
  std::string op;
  std::vector<Array> in;
  Attrs attrs;
  std::vector<std::pair<std::string_view, AttrValue>> only_backward = {};
};

Attrs attrs_of_backward(const Case& c, Op backward) {
  Attrs attrs;
  for (const OpAttr& attr : info_of(backward).attrs) {
    if (c.attrs.has(attr.name)) {
      for (const auto& [name, value] : c.attrs.all()) {
        if (name == attr.name) attrs.set(name, value);
      }
    }
    for (const auto& [name, value] : c.only_backward) {
      if (name == attr.name) attrs.set(name, value);
    }
  }
  return attrs;
}

double weighted_sum(const Array& y, const Array& dy) {
  double sum = 0;
  for (int64_t i = 0; i < y.elements(); ++i) sum += y.as<double>()[i] * dy.as<double>()[i];
  return sum;
}

/// The loss is sum(dy * y) of the first output; ops.def names operands so that a backward op's can be found: x, y, dy, dx.
void expect_gradient(Case c) {
  SCOPED_TRACE(c.op);
  const Op forward = op_named(c.op), backward = op_named(c.op + "_backward");
  const std::vector<Array> out = run(forward, c.in, c.attrs);
  const Array dy = out[0].shape().rank() == 0 ? Array::of<double>({}, {0.75}) : wave(out[0].shape(), 0.3);

  std::map<std::string, Array> known;
  for (size_t i = 0; i < c.in.size(); ++i) known[info_of(forward).inputs[i].name] = c.in[i];
  for (size_t i = 0; i < out.size(); ++i) known[info_of(forward).outputs[i]] = out[i];
  known["d" + info_of(forward).outputs[0]] = dy;
  std::vector<Array> in;
  for (const OpInput& input : info_of(backward).inputs) {
    if (known.contains(input.name)) in.push_back(known[input.name]);
  }
  const std::vector<Array> gradients = run(backward, in, attrs_of_backward(c, backward));

  for (size_t g = 0; g < gradients.size(); ++g) {
    const std::string& name = info_of(backward).outputs[g];
    size_t which = 0;
    while ("d" + info_of(forward).inputs[which].name != name) ++which;
    ASSERT_EQ(gradients[g].shape(), c.in[which].shape());
    for (int64_t i = 0; i < gradients[g].elements(); ++i) {
      const double step = 1e-5, at = c.in[which].as<double>()[i];
      c.in[which].as<double>()[i] = at + step;
      const double above = weighted_sum(run(forward, c.in, c.attrs)[0], dy);
      c.in[which].as<double>()[i] = at - step;
      const double below = weighted_sum(run(forward, c.in, c.attrs)[0], dy);
      c.in[which].as<double>()[i] = at;
      // Truncation is step^2 / 6 of a third derivative of a few units; rounding 2^-52 / step: both about 1e-10.
      EXPECT_NEAR(gradients[g].as<double>()[i], (above - below) / (2 * step), 2e-9) << name << " element " << i;
    }
  }
}

TEST(ReferenceGradients, OfActivationsEqualFiniteDifferences) {
  for (const char* op : {"relu", "silu", "tanh", "sigmoid"}) expect_gradient({op, {wave({3, 5}, 1)}, {}});
  for (const char* approximate : {"tanh", "erf"}) expect_gradient({"gelu", {wave({3, 5}, 1)}, {{"approximate", std::string(approximate)}}});
}

TEST(ReferenceGradients, OfNormsEqualFiniteDifferences) {
  expect_gradient({"layer_norm", {wave({2, 3, 7}, 1), wave({7}, 2), wave({7}, 3)}, {}});
  expect_gradient({"rms_norm", {wave({2, 3, 7}, 1), wave({7}, 2)}, {}});
}

TEST(ReferenceGradients, OfSoftmaxEqualFiniteDifferences) {
  for (const char* op : {"softmax", "log_softmax"}) {
    for (const int64_t axis : {-1, 0, 1}) expect_gradient({op, {wave({2, 3, 4}, 1)}, {{"axis", axis}}});
  }
}

TEST(ReferenceGradients, OfAttentionEqualFiniteDifferences) {
  const auto attention = [](int64_t t, int64_t s, int64_t heads, int64_t groups, bool causal) {
    expect_gradient(
        {"attention", {wave({2, t, heads, 4}, 1), wave({2, s, groups, 4}, 2), wave({2, s, groups, 4}, 3)}, {{"causal", causal}}});
  };
  attention(3, 3, 2, 2, true);
  attention(3, 3, 4, 2, true);
  attention(2, 5, 2, 1, true);
  attention(5, 2, 2, 1, true);  // the first three queries see nothing
  attention(3, 4, 2, 2, false);
}

TEST(ReferenceGradients, OfIndexingEqualFiniteDifferences) {
  const Array tokens = Array::of<int32_t>({2, 3}, {4, 0, 4, 1, 1, 4});  // repeated and missing rows
  expect_gradient({"embedding", {wave({5, 3}, 1), tokens}, {}, {{"rows", int64_t{5}}}});
  const Array index = Array::of<int64_t>({2, 2, 3}, {0, 3, 3, 1, 3, 0, 2, 2, 2, 1, 0, 3});
  expect_gradient({"gather", {wave({2, 4, 3}, 1), index}, {{"axis", int64_t{1}}}, {{"size", int64_t{4}}}});
}

TEST(ReferenceGradients, OfLossesEqualFiniteDifferences) {
  const Array targets = Array::of<int64_t>({2, 2}, {1, -100, 3, 0});
  expect_gradient({"cross_entropy", {wave({2, 2, 4}, 1), targets}, {}});
  expect_gradient({"cross_entropy", {wave({2, 2, 4}, 1), targets, wave({2, 2}, 5)}, {}});
  expect_gradient({"cross_entropy", {wave({2, 2, 4}, 1), targets}, {{"label_smoothing", 0.2}, {"z_loss", 0.1}}});
  for (const char* op : {"bce_with_logits", "mse", "huber"}) {
    expect_gradient({op, {wave({3, 4}, 1), wave({3, 4}, 2)}, {}});
    expect_gradient({op, {wave({3, 4}, 1), wave({3, 4}, 2), wave({3, 4}, 5)}, {}});
  }
  expect_gradient({"huber", {wave({3, 4}, 1), wave({3, 4}, 2)}, {{"delta", 0.4}}});
}

}  // namespace
}  // namespace st
