#include "passes/gradients.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "ir/host_op.h"

// One rule an op, in the order of ops.def. y is the op's result, dy the gradient that came for it; sum_to undoes broadcasting.
// C++ leaves the order of arguments open, and recalling a value or building a node appends to a graph: where a call would have two such
// arguments they are named first, so that every compiler makes the same program.
namespace st {
namespace {

void gradient_none(Chain& c) { fail(Code::unsupported, text("autodiff: ", name_of(c.node().op), " has no gradient")); }
void gradient_zero(Chain&) {}

// --- matrix product ---

/// [..., K] as a matrix; a vector is one row.
Value rows_of(Chain& c, Value x) {
  const Shape shape = c.b.shape(x);
  return shape.rank() == 2 ? x : c.b.reshape(x, {shape.elements(0, shape.rank() - 1), shape.last()});
}

/// dy as an operand of a product: autocast's result may be wider than what it was made of.
Value dy_as_operand(Chain& c) { return c.b.as(c.d(0), c.in_type(0).dtype); }

/// A product that is input i's gradient.
Value product_for(Chain& c, int32_t i, Value a, Value b, bool transpose_a, bool transpose_b) {
  const DType operands = c.in_type(i).dtype, wanted = c.gradient_type(i);
  const std::string result(wanted == operands ? "same" : "f32");
  return c.b(Op::matmul, {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}, {"result", result}});
}

/// dW of y = x W with one W for all rows: x^T dy over all rows at once, so it is whole before anyone adds to it.
Value weight_gradient(Chain& c, Value x, Value dy, bool transposed) {
  const Value all_x = rows_of(c, x), all_dy = rows_of(c, dy);
  return transposed ? product_for(c, 1, all_dy, all_x, true, false) : product_for(c, 1, all_x, all_dy, true, false);
}

void gradient_matmul(Chain& c) {
  const bool ta = c.node().attrs.flag("transpose_a"), tb = c.node().attrs.flag("transpose_b");
  const Value dy = dy_as_operand(c);
  if (c.needs(0)) {
    const Value da = ta ? product_for(c, 0, c.in(1), dy, tb, true) : product_for(c, 0, dy, c.in(1), false, !tb);
    c.give(0, c.b.sum_to(da, c.in_type(0).shape));
  }
  if (!c.needs(1)) return;
  if (!ta && c.in_type(1).shape.rank() == 2) {
    c.give(1, weight_gradient(c, c.in(0), dy, tb));
  } else {
    const Value db = tb ? product_for(c, 1, dy, c.in(0), true, ta) : product_for(c, 1, c.in(0), dy, !ta, false);
    c.give(1, c.b.sum_to(db, c.in_type(1).shape));
  }
}

void gradient_linear(Chain& c) {
  const bool transposed = c.node().attrs.flag("transpose_weight");
  const Value operand = dy_as_operand(c);
  if (c.needs(0)) {
    const Value dy = rows_of(c, operand), weight = c.in(1), dx = product_for(c, 0, dy, weight, false, !transposed);
    const Shape shape = c.in_type(0).shape;
    c.give(0, shape.rank() == 2 ? dx : c.b.reshape(dx, shape));
  }
  if (c.needs(1)) c.give(1, weight_gradient(c, c.in(0), operand, transposed));
  if (c.needs(2)) c.give(2, c.b.sum_to(c.d(0), c.in_type(2).shape));
}

// --- collectives along the tensor axis ---

/// Sums are of fp32 at least; give() returns to the input's own gradient type.
Value summable(Chain& c, Value dy) {
  const DType dtype = c.b.type(dy).dtype;
  return dtype == DType::f64 ? dy : c.b.as(dy, DType::f32);
}
void gradient_tensor_gather(Chain& c) {
  if (c.node().attrs.word("uses") == "parts")
    return c.give(0, c.b(Op::tensor_scatter, {summable(c, c.d(0))}, {{"ranks", c.node().attrs.integer("ranks")}}));
  const int64_t rank = c.b.program().tensor_rank;
  c.give(0, c.b(Op::tensor_part, {c.d(0)}, {{"rank", rank}, {"ranks", c.node().attrs.integer("ranks")}}));
}
void gradient_tensor_scatter(Chain& c) {
  c.give(0, c.b(Op::tensor_gather, {c.d(0)}, {{"ranks", c.node().attrs.integer("ranks")}, {"uses", std::string("whole")}}));
}
void gradient_tensor_sum(Chain& c) { c.give(0, c.d(0)); }
void gradient_tensor_share(Chain& c) {
  c.give(0, c.node().attrs.word("uses") == "parts" ? c.b(Op::tensor_sum, {summable(c, c.d(0))}) : c.d(0));
}
void gradient_tensor_part(Chain& c) {
  c.give(0, c.b(Op::tensor_gather, {c.d(0)}, {{"ranks", c.node().attrs.integer("ranks")}, {"uses", std::string("whole")}}));
}

// --- elementwise, two operands ---

void give_summed(Chain& c, int32_t i, Value gradient) { c.give(i, c.b.sum_to(gradient, c.in_type(i).shape)); }
Value constant(Chain& c, double value, const Type& like) { return c.b.fill({}, value, like.dtype); }
Value choose(Chain& c, Value condition, Value a, Value b) { return c.b(Op::where, {condition, a, b}); }
Value test(Chain& c, Value a, const char* name, Value b) { return c.b(Op::compare, {a, b}, {{"test", std::string(name)}}); }

void gradient_add(Chain& c) {
  if (c.needs(0)) give_summed(c, 0, c.d(0));
  if (c.needs(1)) give_summed(c, 1, c.d(0));
}

void gradient_sub(Chain& c) {
  if (c.needs(0)) give_summed(c, 0, c.d(0));
  if (c.needs(1)) give_summed(c, 1, c.b(Op::neg, {c.d(0)}));
}

void gradient_mul(Chain& c) {
  if (c.needs(0)) give_summed(c, 0, c.b.mul(c.d(0), c.in(1)));
  if (c.needs(1)) give_summed(c, 1, c.b.mul(c.d(0), c.in(0)));
}

void gradient_div(Chain& c) {
  const Value b = c.in(1);
  if (c.needs(0)) give_summed(c, 0, c.b.div(c.d(0), b));
  if (!c.needs(1)) return;
  const Value product = c.b.mul(c.d(0), c.out(0));
  give_summed(c, 1, c.b(Op::neg, {c.b.div(product, b)}));
}

/// dy where operand i wins, half of it on ties.
void gradient_extremum(Chain& c, const char* wins) {
  const Value half = c.b.scale(c.d(0), 0.5), zero = constant(c, 0, c.out_type(0));
  const std::array<Value, 2> operands = {c.in(0), c.in(1)};
  for (int32_t i = 0; i < 2; ++i) {
    if (!c.needs(i)) continue;
    const Value own = operands[static_cast<size_t>(i)], other = operands[static_cast<size_t>(1 - i)];
    const Value tied = choose(c, test(c, own, "equal", other), half, zero);
    give_summed(c, i, choose(c, test(c, own, wins, other), c.d(0), tied));
  }
}

void gradient_minimum(Chain& c) { gradient_extremum(c, "less"); }
void gradient_maximum(Chain& c) { gradient_extremum(c, "greater"); }

// a^b: b a^(b-1), zero where b is 0; y ln a, zero where a is 0 and b is not negative (as PyTorch).
void gradient_pow(Chain& c) {
  const Value zero = constant(c, 0, c.out_type(0)), a = c.in(0), b = c.in(1);
  if (c.needs(0)) {
    const Value slope = c.b.mul(b, c.b(Op::pow, {a, c.b(Op::affine, {b}, {{"shift", -1.0}})}));
    const Value da = c.b.mul(c.d(0), slope);
    give_summed(c, 0, choose(c, test(c, b, "equal", zero), zero, da));
  }
  if (c.needs(1)) {
    const Value y = c.out(0), log_a = c.b(Op::log, {a});
    const Value slope = c.b.mul(c.d(0), c.b.mul(y, log_a));
    const Value at_zero = choose(c, test(c, b, "greater_equal", zero), zero, slope);
    give_summed(c, 1, choose(c, test(c, a, "equal", zero), at_zero, slope));
  }
}

void gradient_where(Chain& c) {
  const Value zero = constant(c, 0, c.out_type(0));
  if (c.needs(1)) give_summed(c, 1, choose(c, c.in(0), c.d(0), zero));
  if (c.needs(2)) give_summed(c, 2, choose(c, c.in(0), zero, c.d(0)));
}

// --- elementwise, one operand ---

void gradient_affine(Chain& c) { c.give(0, c.b.scale(c.d(0), c.node().attrs.real("scale"))); }
void gradient_exp(Chain& c) { c.give(0, c.b.mul(c.d(0), c.out(0))); }
void gradient_log(Chain& c) { c.give(0, c.b.div(c.d(0), c.in(0))); }
void gradient_sqrt(Chain& c) { c.give(0, c.b.div(c.d(0), c.b.scale(c.out(0), 2))); }
void gradient_abs(Chain& c) { c.give(0, c.b.mul(c.d(0), c.b(Op::sign, {c.in(0)}))); }
void gradient_neg(Chain& c) { c.give(0, c.b(Op::neg, {c.d(0)})); }

void gradient_clamp(Chain& c) {
  const double low = c.node().attrs.real("low"), high = c.node().attrs.real("high");
  const Value zero = constant(c, 0, c.out_type(0));
  Value dx = c.d(0);
  const Value x = c.in(0);
  if (std::isfinite(low)) dx = choose(c, test(c, x, "greater", constant(c, low, c.in_type(0))), dx, zero);
  if (std::isfinite(high)) dx = choose(c, test(c, x, "less", constant(c, high, c.in_type(0))), dx, zero);
  c.give(0, dx);
}

void gradient_gelu(Chain& c) { c.give(0, c.b(Op::gelu_backward, {c.in(0), c.d(0)}, c.node().attrs)); }
void gradient_relu(Chain& c) { c.give(0, c.b(Op::relu_backward, {c.out(0), c.d(0)})); }
void gradient_silu(Chain& c) { c.give(0, c.b(Op::silu_backward, {c.in(0), c.d(0)})); }
void gradient_tanh(Chain& c) { c.give(0, c.b(Op::tanh_backward, {c.out(0), c.d(0)})); }
void gradient_sigmoid(Chain& c) { c.give(0, c.b(Op::sigmoid_backward, {c.out(0), c.d(0)})); }
void gradient_cast(Chain& c) { c.give(0, c.b.as(c.d(0), c.in_type(0).dtype)); }

// y is linear in x with the mask fixed by the counters: the same op turns dy into dx, and no mask is kept.
void gradient_dropout(Chain& c) { c.give(0, c.b(Op::dropout, {c.d(0), c.in(1)}, c.node().attrs)); }

// --- normalisation and softmax ---

void gradient_layer_norm(Chain& c) {
  const auto d = c.b.append(Op::layer_norm_backward, {c.in(0), c.in(1), c.out(1), c.out(2), c.d(0)});
  for (int32_t i = 0; i < 3; ++i) c.give(i, d[static_cast<size_t>(i)]);
}

void gradient_rms_norm(Chain& c) {
  const auto d = c.b.append(Op::rms_norm_backward, {c.in(0), c.in(1), c.out(1), c.d(0)});
  for (int32_t i = 0; i < 2; ++i) c.give(i, d[static_cast<size_t>(i)]);
}

void gradient_softmax(Chain& c) { c.give(0, c.b(Op::softmax_backward, {c.out(0), c.d(0)}, c.node().attrs)); }
void gradient_log_softmax(Chain& c) { c.give(0, c.b(Op::log_softmax_backward, {c.out(0), c.d(0)}, c.node().attrs)); }

// --- attention ---

void gradient_attention(Chain& c) {
  const auto d = c.b.append(Op::attention_backward, {c.in(0), c.in(1), c.in(2), c.out(0), c.out(1), c.d(0)}, c.node().attrs);
  for (int32_t i = 0; i < 3; ++i) c.give(i, d[static_cast<size_t>(i)]);
}

void gradient_rope(Chain& c) {
  Attrs back = c.node().attrs;
  back.set("inverse", !back.flag("inverse"));
  c.give(0, c.b(Op::rope, {c.d(0)}, back));
}

// --- indexing ---

void gradient_embedding(Chain& c) {
  const Attrs& attrs = c.node().attrs;
  const Value tokens = c.in(1), dy = c.b.as(c.d(0), c.gradient_type(0));  // widened before the sum
  c.give(0, c.b(Op::embedding_backward, {tokens, dy},
                {{"rows", c.in_type(0).shape[0]}, {"first", attrs.integer("first")}, {"classes", attrs.integer("classes")}}));
}

void gradient_gather(Chain& c) {
  const int64_t axis = c.node().attrs.integer("axis");
  const int64_t size = c.in_type(0).shape[normalize_axis("gather", axis, c.in_type(0).shape.rank())];
  c.give(0, c.b(Op::gather_backward, {c.in(1), c.d(0)}, {{"axis", axis}, {"size", size}}));
}

// --- losses: the count is not differentiable, the sum's gradient is a scalar ---

std::vector<Value> with_weights(Chain& c, std::vector<Value> operands, int32_t at = 2) {
  if (std::ssize(c.node().in) > at) operands.push_back(c.in(at));
  require(!c.needs(at), Code::unsupported, "autodiff: ", name_of(c.node().op), " has no gradient for its weights");
  return operands;
}

void gradient_cross_entropy(Chain& c) {
  if (!c.d(0)) return;
  c.give(0, c.b(Op::cross_entropy_backward, with_weights(c, {c.in(0), c.in(1), c.out(2), c.d(0)}), c.node().attrs));
}

// The terms, which depend on the logits, get no gradient of their own: this is the whole one.
void gradient_vocabulary_cross_entropy(Chain& c) {
  if (!c.d(0)) return;
  c.give(0, c.b(Op::vocabulary_cross_entropy_backward, with_weights(c, {c.in(0), c.in(1), c.out(3), c.d(0)}, 3), c.node().attrs));
}

void give_prediction(Chain& c, Op backward, bool symmetric) {
  if (!c.d(0)) return;
  require(symmetric || !c.needs(1), Code::unsupported, "autodiff: ", name_of(c.node().op), " has no gradient for its target");
  const Value dx = c.b(backward, with_weights(c, {c.in(0), c.in(1), c.d(0)}), c.node().attrs);
  c.give(0, dx);
  if (c.needs(1)) c.give(1, c.b(Op::neg, {dx}));
}

void gradient_bce_with_logits(Chain& c) { give_prediction(c, Op::bce_with_logits_backward, false); }
void gradient_mse(Chain& c) { give_prediction(c, Op::mse_backward, true); }
void gradient_huber(Chain& c) { give_prediction(c, Op::huber_backward, true); }

// --- reductions and shapes ---

Shape kept_shape(Chain& c) {
  Shape kept = c.in_type(0).shape;
  const Ints& axes = c.node().attrs.ints("axes");
  for (int32_t i = 0; i < kept.rank(); ++i)
    if (axes.empty()) kept[i] = 1;
  for (const int64_t axis : axes) kept[normalize_axis(name_of(c.node().op), axis, kept.rank())] = 1;
  return kept;
}

Value stretched(Chain& c, Value reduced) {
  const Shape whole = c.in_type(0).shape;
  return c.b(Op::broadcast_to, {c.b.reshape(reduced, kept_shape(c))}, {{"shape", Ints(whole.begin(), whole.end())}});
}

void gradient_sum(Chain& c) { c.give(0, stretched(c, c.d(0))); }

void gradient_mean(Chain& c) {
  const Shape whole = c.in_type(0).shape, kept = kept_shape(c);
  int64_t count = 1;
  for (int32_t i = 0; i < whole.rank(); ++i)
    if (kept[i] == 1) count *= whole[i];
  c.give(0, stretched(c, c.b.scale(c.d(0), 1 / static_cast<double>(std::max<int64_t>(1, count)))));  // of nothing: no elements to give to
}

void gradient_max(Chain& c) {
  const Shape kept = kept_shape(c);
  const Value x = c.in(0), y = c.b.reshape(c.out(0), kept);
  const Value is_max = c.b(Op::cast, {test(c, x, "equal", y)}, {{"dtype", std::string(name_of(c.in_type(0).dtype))}});
  const Value ties = c.b.sum(is_max, c.node().attrs.ints("axes"), true);
  const Value dy = c.b.reshape(c.d(0), kept);
  c.give(0, c.b.mul(is_max, c.b.div(dy, c.b.reshape(ties, kept))));
}

void gradient_reshape(Chain& c) { c.give(0, c.b(Op::reshape, {c.d(0)}, reshape_attrs(c.in_type(0)))); }
void gradient_broadcast_to(Chain& c) { give_summed(c, 0, c.d(0)); }

void gradient_transpose(Chain& c) {
  const Ints& order = c.node().attrs.ints("order");
  Ints back(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(normalize_axis("transpose", order[i], static_cast<int32_t>(order.size())))] = static_cast<int64_t>(i);
  c.give(0, c.b(Op::transpose, {c.d(0)}, {{"order", back}}));
}

void gradient_slice(Chain& c) {
  const Attrs& attrs = c.node().attrs;
  const int64_t size = c.in_type(0).shape[normalize_axis("slice", attrs.integer("axis"), c.in_type(0).shape.rank())];
  const int64_t start = attrs.integer("start"), end = attrs.integer("end");
  c.give(0, c.b(Op::pad, {c.d(0)}, {{"axis", attrs.integer("axis")}, {"before", start}, {"after", size - end}}));
}

void gradient_pad(Chain& c) {
  const Attrs& attrs = c.node().attrs;
  const int64_t size = c.in_type(0).shape[normalize_axis("pad", attrs.integer("axis"), c.in_type(0).shape.rank())];
  const int64_t before = attrs.integer("before");
  c.give(0, c.b(Op::slice, {c.d(0)}, {{"axis", attrs.integer("axis")}, {"start", before}, {"end", before + size}}));
}

void gradient_split(Chain& c) {
  std::vector<Value> pieces;
  for (int32_t i = 0; i < static_cast<int32_t>(c.node().out.size()); ++i) {
    const Value piece = c.d(i);
    pieces.push_back(piece ? piece : c.b.fill(c.out_type(i).shape, 0, c.out_type(i).dtype));
  }
  c.give(0, c.b(Op::concat, pieces, {{"axis", c.node().attrs.integer("axis")}}));
}

void gradient_concat(Chain& c) {
  const int64_t axis = c.node().attrs.integer("axis");
  Ints sizes;
  for (int32_t i = 0; i < static_cast<int32_t>(c.node().in.size()); ++i)
    sizes.push_back(c.in_type(i).shape[normalize_axis("concat", axis, c.in_type(i).shape.rank())]);
  const auto pieces = c.b.append(Op::split, {c.d(0)}, {{"axis", axis}, {"sizes", sizes}});
  for (int32_t i = 0; i < static_cast<int32_t>(pieces.size()); ++i) c.give(i, pieces[static_cast<size_t>(i)]);
}

// --- the host's own ---

void gradient_host(Chain& c) {
  const Attrs& attrs = c.node().attrs;
  const auto op = host_op_of("autodiff", attrs.integer("id"));
  require(op->backward != nullptr, Code::unsupported, "autodiff: host op \"", op->name,
          "\" depends on a trainable parameter but has no backward callback; register it with one");
  std::vector<Value> operands, gradients;
  Ints wanted;
  const auto inputs = static_cast<int32_t>(c.node().in.size()), outputs = static_cast<int32_t>(c.node().out.size());
  for (int32_t i = 0; i < inputs; ++i) {
    operands.push_back(c.in(i));
    if (c.needs(i)) wanted.push_back(i);
  }
  for (int32_t i = 0; i < outputs; ++i) operands.push_back(c.out(i));
  for (int32_t i = 0; i < outputs; ++i) {
    const Type type = c.out_type(i);
    if (!is_floating(type.dtype)) continue;
    const Value dy = c.d(i);
    operands.push_back(dy ? dy : c.b.fill(type.shape, 0, type.dtype));
  }
  const auto d = c.b.append(Op::host_backward, operands,
                            {{"name", op->name}, {"id", attrs.integer("id")}, {"inputs", int64_t{inputs}}, {"wanted", wanted}});
  for (size_t i = 0; i < wanted.size(); ++i) c.give(static_cast<int32_t>(wanted[i]), d[i]);
}

/// Statistics (mean, log-sum-exp, counts) come beside a result and are constants to us: better no gradient than a wrong one.
void refuse_other_outputs(Chain& c) {
  if (c.node().op == Op::split || c.node().op == Op::host) return;  // results all of them
  const auto& outputs = info_of(c.node().op).outputs;
  for (int32_t i = 1; i < static_cast<int32_t>(c.node().out.size()); ++i)
    require(!c.d(i) || outputs[static_cast<size_t>(i)] == "count", Code::unsupported, "autodiff: output \"",
            outputs[static_cast<size_t>(i)], "\" of ", name_of(c.node().op), " has no gradient; use its first output");
}

}  // namespace

void differentiate(Chain& chain) {
  refuse_other_outputs(chain);
  switch (chain.node().op) {
#define ST_OP(name, inputs, outputs, attributes, shape, layout, gradient, help) \
  case Op::name:                                                                \
    return gradient_##gradient(chain);
#include "ir/ops.def"
#undef ST_OP
  }
}

}  // namespace st
