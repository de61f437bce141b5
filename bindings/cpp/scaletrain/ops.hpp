// Every op as a typed function in namespace scaletrain::ops. Parameters: inputs, attributes, then pointers for further results.
// Throws the graph's error if the call is wrong. Value() omits an optional input.
// Generated from runtime/ir/ops.def by capi/generators/ops_header.cpp: change the row, not this file.
#pragma once

#include <scaletrain/ops.h>

#include <limits>
#include <scaletrain/graph.hpp>
#include <string>
#include <vector>

// clang-format off
namespace scaletrain {
namespace ops {

/// a constant in every element
inline Value fill(const Graph& graph, const std::vector<int64_t>& shape, double value = 0, DType dtype = DType::f32) {
  return graph.made(st_op_fill(graph.get(), static_cast<int32_t>(shape.size()), shape.data(), value, static_cast<st_dtype>(dtype)));
}

/// c = op(a) op(b) over the last two dimensions; leading dimensions broadcast. [..., M, K] x [..., K, N] -> [..., M, N]
inline Value matmul(const Value& a, const Value& b, bool transpose_a = false, bool transpose_b = false) {
  return a.made(st_op_matmul(a.graph(), a.id(), b.id_in(a.graph()), transpose_a ? 1 : 0, transpose_b ? 1 : 0));
}

/// y = x weight + bias: [..., K] x [K, N] (transpose_weight: [N, K]) + [N]; fuse makes it from matmul and add
inline Value linear(const Value& x, const Value& weight, const Value& bias, bool transpose_weight = false) {
  return x.made(st_op_linear(x.graph(), x.id(), weight.id_in(x.graph()), bias.id_in(x.graph()), transpose_weight ? 1 : 0));
}

/// c = a + b
inline Value add(const Value& a, const Value& b) {
  return a.made(st_op_add(a.graph(), a.id(), b.id_in(a.graph())));
}

/// c = a - b
inline Value sub(const Value& a, const Value& b) {
  return a.made(st_op_sub(a.graph(), a.id(), b.id_in(a.graph())));
}

/// c = a * b
inline Value mul(const Value& a, const Value& b) {
  return a.made(st_op_mul(a.graph(), a.id(), b.id_in(a.graph())));
}

/// c = a / b
inline Value div(const Value& a, const Value& b) {
  return a.made(st_op_div(a.graph(), a.id(), b.id_in(a.graph())));
}

/// c = min(a, b); NaN wins; the gradient is halved on ties
inline Value minimum(const Value& a, const Value& b) {
  return a.made(st_op_minimum(a.graph(), a.id(), b.id_in(a.graph())));
}

/// c = max(a, b); NaN wins; the gradient is halved on ties
inline Value maximum(const Value& a, const Value& b) {
  return a.made(st_op_maximum(a.graph(), a.id(), b.id_in(a.graph())));
}

/// c = a ^ b
inline Value pow(const Value& a, const Value& b) {
  return a.made(st_op_pow(a.graph(), a.id(), b.id_in(a.graph())));
}

/// c = a test b as bool; test: equal|not_equal|less|less_equal|greater|greater_equal
inline Value compare(const Value& a, const Value& b, const std::string& test = "equal") {
  return a.made(st_op_compare(a.graph(), a.id(), b.id_in(a.graph()), test.c_str()));
}

/// c = condition ? a : b; the three broadcast
inline Value where(const Value& condition, const Value& a, const Value& b) {
  return condition.made(st_op_where(condition.graph(), condition.id(), a.id_in(condition.graph()), b.id_in(condition.graph())));
}

/// y = scale * x + shift
inline Value affine(const Value& x, double scale = 1, double shift = 0) {
  return x.made(st_op_affine(x.graph(), x.id(), scale, shift));
}

/// y = e^x
inline Value exp(const Value& x) {
  return x.made(st_op_exp(x.graph(), x.id()));
}

/// y = ln x
inline Value log(const Value& x) {
  return x.made(st_op_log(x.graph(), x.id()));
}

/// y = sqrt x
inline Value sqrt(const Value& x) {
  return x.made(st_op_sqrt(x.graph(), x.id()));
}

/// y = |x|
inline Value abs(const Value& x) {
  return x.made(st_op_abs(x.graph(), x.id()));
}

/// y = -x
inline Value neg(const Value& x) {
  return x.made(st_op_neg(x.graph(), x.id()));
}

/// y = -1, 0 or 1; sign(NaN) is NaN
inline Value sign(const Value& x) {
  return x.made(st_op_sign(x.graph(), x.id()));
}

/// y = min(max(x, low), high); gradient 0 on the bounds
inline Value clamp(const Value& x, double low = -std::numeric_limits<double>::infinity(), double high = std::numeric_limits<double>::infinity()) {
  return x.made(st_op_clamp(x.graph(), x.id(), low, high));
}

/// y = x Phi(x); approximate: tanh (GPT-2's) or erf (exact); approximate: tanh|erf
inline Value gelu(const Value& x, const std::string& approximate = "tanh") {
  return x.made(st_op_gelu(x.graph(), x.id(), approximate.c_str()));
}

/// y = max(x, 0)
inline Value relu(const Value& x) {
  return x.made(st_op_relu(x.graph(), x.id()));
}

/// y = x sigmoid(x)
inline Value silu(const Value& x) {
  return x.made(st_op_silu(x.graph(), x.id()));
}

/// y = tanh x
inline Value tanh(const Value& x) {
  return x.made(st_op_tanh(x.graph(), x.id()));
}

/// y = 1 / (1 + e^-x)
inline Value sigmoid(const Value& x) {
  return x.made(st_op_sigmoid(x.graph(), x.id()));
}

/// y = x in another dtype; rounds to nearest even; float to integer truncates
inline Value cast(const Value& x, DType dtype) {
  return x.made(st_op_cast(x.graph(), x.id(), static_cast<st_dtype>(dtype)));
}

/// y = x * keep / (1 - rate), keep drawn anew for each element and step; rate 0: the recipe's; y = x outside training
inline Value dropout(const Value& x, double rate = 0) {
  return x.made(st_op_dropout(x.graph(), x.id(), rate));
}

/// y = (x - mean) * rstd * gamma + beta over the last dimension; gamma and beta have the type of x, or f32 for a 16-bit x; mean and rstd are f32 (f64 for f64) of the leading dimensions
inline Value layer_norm(const Value& x, const Value& gamma, const Value& beta, double epsilon = 1e-05, Value* mean = nullptr, Value* rstd = nullptr) {
  st_value ids[2] = {0};
  const Value value = x.made(st_op_layer_norm(x.graph(), x.id(), gamma.id_in(x.graph()), beta.id_in(x.graph()), epsilon, &ids[0], &ids[1]));
  if (mean != nullptr) *mean = x.made(ids[0]);
  if (rstd != nullptr) *rstd = x.made(ids[1]);
  return value;
}

/// y = x * rstd * gamma, rstd = 1 / sqrt(mean(x^2) + epsilon); gamma has the type of x, or f32 for a 16-bit x
inline Value rms_norm(const Value& x, const Value& gamma, double epsilon = 1e-05, Value* rstd = nullptr) {
  st_value ids[1] = {0};
  const Value value = x.made(st_op_rms_norm(x.graph(), x.id(), gamma.id_in(x.graph()), epsilon, &ids[0]));
  if (rstd != nullptr) *rstd = x.made(ids[0]);
  return value;
}

/// y = e^x / sum e^x along axis
inline Value softmax(const Value& x, int64_t axis = -1) {
  return x.made(st_op_softmax(x.graph(), x.id(), axis));
}

/// y = x - log sum e^x along axis
inline Value log_softmax(const Value& x, int64_t axis = -1) {
  return x.made(st_op_log_softmax(x.graph(), x.id(), axis));
}

/// o = softmax(scale q k^T) v. q [B, T, H, D], k and v [B, S, G, D], G divides H (grouped-query), scale 0: 1/sqrt(D); causal: query t sees keys 0..t+S-T; lse [B, H, T], f32 (f64 for f64), is log sum exp of each row's scores; a row that sees nothing gives 0 and -inf
inline Value attention(const Value& q, const Value& k, const Value& v, bool causal = true, double scale = 0, Value* lse = nullptr) {
  st_value ids[1] = {0};
  const Value value = q.made(st_op_attention(q.graph(), q.id(), k.id_in(q.graph()), v.id_in(q.graph()), causal ? 1 : 0, scale, &ids[0]));
  if (lse != nullptr) *lse = q.made(ids[0]);
  return value;
}

/// rotates pairs (d, d + D/2) of x [B, T, H, D] by (t + offset) * base^(-2d/D); inverse turns back
inline Value rope(const Value& x, double base = 10000, int64_t offset = 0, bool inverse = false) {
  return x.made(st_op_rope(x.graph(), x.id(), base, offset, inverse ? 1 : 0));
}

/// y[..., :] = weight[tokens[...], :]; weight [V, C], tokens i32 or i64; a token outside 0..V-1 is an error naming its place
inline Value embedding(const Value& weight, const Value& tokens) {
  return weight.made(st_op_embedding(weight.graph(), weight.id(), tokens.id_in(weight.graph())));
}

/// y[i][j] = x[i][index[i][j]] along axis (torch.gather)
inline Value gather(const Value& x, const Value& index, int64_t axis = -1) {
  return x.made(st_op_gather(x.graph(), x.id(), index.id_in(x.graph()), axis));
}

/// index (i32) of the first largest element; NaN is largest
inline Value argmax(const Value& x, int64_t axis = -1, bool keep_dims = false) {
  return x.made(st_op_argmax(x.graph(), x.id(), axis, keep_dims ? 1 : 0));
}

/// sum = -sum_r w_r log softmax(logits)[r, target_r], count = sum_r w_r over rows whose target is not ignore_index; logits [..., V], targets [...] i32 or i64; sum, count and dsum are f64 scalars, lse f32 (f64 for f64) [...]; weights: one per row. label_smoothing: the share of a row's weight spread evenly over all V classes (as in torch); z_loss: adds z_loss lse^2 to each row (PaLM, 2022); weights optional
inline Value cross_entropy(const Value& logits, const Value& targets, const Value& weights = Value(), int64_t ignore_index = -100, double label_smoothing = 0, double z_loss = 0, Value* count = nullptr, Value* lse = nullptr) {
  st_value ids[2] = {0};
  const Value value = logits.made(st_op_cross_entropy(logits.graph(), logits.id(), targets.id_in(logits.graph()), detail::id_or_none(weights, logits.graph()), ignore_index, label_smoothing, z_loss, &ids[0], &ids[1]));
  if (count != nullptr) *count = logits.made(ids[0]);
  if (lse != nullptr) *lse = logits.made(ids[1]);
  return value;
}

/// sum = sum w (max(x, 0) - x t + log(1 + e^-|x|)), count = sum w (without weights: elements); weights optional
inline Value bce_with_logits(const Value& x, const Value& target, const Value& weights = Value(), Value* count = nullptr) {
  st_value ids[1] = {0};
  const Value value = x.made(st_op_bce_with_logits(x.graph(), x.id(), target.id_in(x.graph()), detail::id_or_none(weights, x.graph()), &ids[0]));
  if (count != nullptr) *count = x.made(ids[0]);
  return value;
}

/// sum = sum w (x - t)^2, count = sum w; weights optional
inline Value mse(const Value& x, const Value& target, const Value& weights = Value(), Value* count = nullptr) {
  st_value ids[1] = {0};
  const Value value = x.made(st_op_mse(x.graph(), x.id(), target.id_in(x.graph()), detail::id_or_none(weights, x.graph()), &ids[0]));
  if (count != nullptr) *count = x.made(ids[0]);
  return value;
}

/// sum = sum w (|d| <= delta ? d^2 / 2 : delta (|d| - delta / 2)), d = x - t; count = sum w; weights optional
inline Value huber(const Value& x, const Value& target, const Value& weights = Value(), double delta = 1, Value* count = nullptr) {
  st_value ids[1] = {0};
  const Value value = x.made(st_op_huber(x.graph(), x.id(), target.id_in(x.graph()), detail::id_or_none(weights, x.graph()), delta, &ids[0]));
  if (count != nullptr) *count = x.made(ids[0]);
  return value;
}

/// sum over axes; no axes: over all dimensions
inline Value sum(const Value& x, const std::vector<int64_t>& axes = {}, bool keep_dims = false) {
  return x.made(st_op_sum(x.graph(), x.id(), static_cast<int32_t>(axes.size()), axes.data(), keep_dims ? 1 : 0));
}

/// mean over axes; no axes: over all dimensions; over no elements: NaN
inline Value mean(const Value& x, const std::vector<int64_t>& axes = {}, bool keep_dims = false) {
  return x.made(st_op_mean(x.graph(), x.id(), static_cast<int32_t>(axes.size()), axes.data(), keep_dims ? 1 : 0));
}

/// maximum over axes; ties share the gradient evenly (torch.amax)
inline Value max(const Value& x, const std::vector<int64_t>& axes = {}, bool keep_dims = false) {
  return x.made(st_op_max(x.graph(), x.id(), static_cast<int32_t>(axes.size()), axes.data(), keep_dims ? 1 : 0));
}

/// the same elements in another shape; no copy
inline Value reshape(const Value& x, const std::vector<int64_t>& shape) {
  return x.made(st_op_reshape(x.graph(), x.id(), static_cast<int32_t>(shape.size()), shape.data()));
}

/// repeats dimensions of size 1
inline Value broadcast_to(const Value& x, const std::vector<int64_t>& shape) {
  return x.made(st_op_broadcast_to(x.graph(), x.id(), static_cast<int32_t>(shape.size()), shape.data()));
}

/// y dimension i is x dimension order[i]
inline Value transpose(const Value& x, const std::vector<int64_t>& order) {
  return x.made(st_op_transpose(x.graph(), x.id(), static_cast<int32_t>(order.size()), order.data()));
}

/// x[start:end] along axis
inline Value slice(const Value& x, int64_t axis, int64_t start, int64_t end) {
  return x.made(st_op_slice(x.graph(), x.id(), axis, start, end));
}

/// zeros before and after along axis
inline Value pad(const Value& x, int64_t axis, int64_t before = 0, int64_t after = 0) {
  return x.made(st_op_pad(x.graph(), x.id(), axis, before, after));
}

/// one output for each of sizes along axis; the sizes sum to the dimension
inline std::vector<Value> split(const Value& x, int64_t axis, const std::vector<int64_t>& sizes) {
  std::vector<st_value> ids(sizes.size());
  const st_value first = st_op_split(x.graph(), x.id(), axis, static_cast<int32_t>(sizes.size()), sizes.data(), static_cast<int32_t>(ids.size()), ids.data());
  std::vector<Value> values = {x.made(first)};
  for (size_t i = 1; i < ids.size(); ++i) values.push_back(x.made(ids[i]));
  return values;
}

/// joins along axis
inline Value concat(const std::vector<Value>& xs, int64_t axis = -1) {
  const std::vector<st_value> ids = detail::ids_of(xs, detail::first_of(xs).graph());
  return detail::first_of(xs).made(st_op_concat(detail::first_of(xs).graph(), static_cast<int32_t>(ids.size()), ids.data(), axis));
}

}  // namespace ops

using ops::matmul;  // found by argument-dependent lookup, like the operators

}  // namespace scaletrain
// clang-format on
