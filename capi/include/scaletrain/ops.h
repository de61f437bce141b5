/* Every op as a typed function. Parameters: inputs, attributes, then pointers for further results (each may be NULL). Returns
 * the first result, or 0 if the call is wrong; st_model_create reports the first error. An optional input may be ST_NONE. A word
 * of NULL means the first one listed, a dtype of 0 the default. A list is a count and its elements.
 * Generated from runtime/ir/ops.def by capi/generators/ops_header.cpp: change the row, not this file. */
#ifndef SCALETRAIN_OPS_H
#define SCALETRAIN_OPS_H

#include <scaletrain/graph.h>

/* clang-format off */
ST_BEGIN

/* a constant in every element; dtype: default f32 */
static inline st_value st_op_fill(st_graph* graph, int32_t shape_count, const int64_t* shape, double value, st_dtype dtype) {
  const st_attribute attributes[] = {{"shape", ST_ATTRIBUTE_INTS, shape_count, 0, 0, shape, ST_NULL},
                                     {"value", ST_ATTRIBUTE_REAL, 0, 0, value, ST_NULL, ST_NULL},
                                     {"dtype", ST_ATTRIBUTE_INT, 0, dtype, 0, ST_NULL, ST_NULL}};
  st_value made[1] = {0};
  st_graph_apply(graph, "fill", 0, ST_NULL, 3, attributes, 1, made);
  return made[0];
}

/* c = op(a) op(b) over the last two dimensions; leading dimensions broadcast. [..., M, K] x [..., K, N] -> [..., M, N] */
static inline st_value st_op_matmul(st_graph* graph, st_value a, st_value b, int32_t transpose_a, int32_t transpose_b) {
  const st_value inputs[] = {a, b};
  const st_attribute attributes[] = {{"transpose_a", ST_ATTRIBUTE_BOOL, 0, transpose_a, 0, ST_NULL, ST_NULL},
                                     {"transpose_b", ST_ATTRIBUTE_BOOL, 0, transpose_b, 0, ST_NULL, ST_NULL}};
  st_value made[1] = {0};
  st_graph_apply(graph, "matmul", 2, inputs, 2, attributes, 1, made);
  return made[0];
}

/* y = x weight + bias: [..., K] x [K, N] (transpose_weight: [N, K]) + [N]; fuse makes it from matmul and add */
static inline st_value st_op_linear(st_graph* graph, st_value x, st_value weight, st_value bias, int32_t transpose_weight) {
  const st_value inputs[] = {x, weight, bias};
  const st_attribute attributes[] = {{"transpose_weight", ST_ATTRIBUTE_BOOL, 0, transpose_weight, 0, ST_NULL, ST_NULL}};
  st_value made[1] = {0};
  st_graph_apply(graph, "linear", 3, inputs, 1, attributes, 1, made);
  return made[0];
}

/* c = a + b */
static inline st_value st_op_add(st_graph* graph, st_value a, st_value b) {
  const st_value inputs[] = {a, b};
  st_value made[1] = {0};
  st_graph_apply(graph, "add", 2, inputs, 0, ST_NULL, 1, made);
  return made[0];
}

/* c = a - b */
static inline st_value st_op_sub(st_graph* graph, st_value a, st_value b) {
  const st_value inputs[] = {a, b};
  st_value made[1] = {0};
  st_graph_apply(graph, "sub", 2, inputs, 0, ST_NULL, 1, made);
  return made[0];
}

/* c = a * b */
static inline st_value st_op_mul(st_graph* graph, st_value a, st_value b) {
  const st_value inputs[] = {a, b};
  st_value made[1] = {0};
  st_graph_apply(graph, "mul", 2, inputs, 0, ST_NULL, 1, made);
  return made[0];
}

/* c = a / b */
static inline st_value st_op_div(st_graph* graph, st_value a, st_value b) {
  const st_value inputs[] = {a, b};
  st_value made[1] = {0};
  st_graph_apply(graph, "div", 2, inputs, 0, ST_NULL, 1, made);
  return made[0];
}

/* c = min(a, b); NaN wins; the gradient is halved on ties */
static inline st_value st_op_minimum(st_graph* graph, st_value a, st_value b) {
  const st_value inputs[] = {a, b};
  st_value made[1] = {0};
  st_graph_apply(graph, "minimum", 2, inputs, 0, ST_NULL, 1, made);
  return made[0];
}

/* c = max(a, b); NaN wins; the gradient is halved on ties */
static inline st_value st_op_maximum(st_graph* graph, st_value a, st_value b) {
  const st_value inputs[] = {a, b};
  st_value made[1] = {0};
  st_graph_apply(graph, "maximum", 2, inputs, 0, ST_NULL, 1, made);
  return made[0];
}

/* c = a ^ b */
static inline st_value st_op_pow(st_graph* graph, st_value a, st_value b) {
  const st_value inputs[] = {a, b};
  st_value made[1] = {0};
  st_graph_apply(graph, "pow", 2, inputs, 0, ST_NULL, 1, made);
  return made[0];
}

/* c = a test b as bool; test: equal|not_equal|less|less_equal|greater|greater_equal */
static inline st_value st_op_compare(st_graph* graph, st_value a, st_value b, const char* test) {
  const st_value inputs[] = {a, b};
  const st_attribute attributes[] = {{"test", ST_ATTRIBUTE_WORD, 0, 0, 0, ST_NULL, test}};
  st_value made[1] = {0};
  st_graph_apply(graph, "compare", 2, inputs, 1, attributes, 1, made);
  return made[0];
}

/* c = condition ? a : b; the three broadcast */
static inline st_value st_op_where(st_graph* graph, st_value condition, st_value a, st_value b) {
  const st_value inputs[] = {condition, a, b};
  st_value made[1] = {0};
  st_graph_apply(graph, "where", 3, inputs, 0, ST_NULL, 1, made);
  return made[0];
}

/* y = scale * x + shift; scale: default 1 */
static inline st_value st_op_affine(st_graph* graph, st_value x, double scale, double shift) {
  const st_value inputs[] = {x};
  const st_attribute attributes[] = {{"scale", ST_ATTRIBUTE_REAL, 0, 0, scale, ST_NULL, ST_NULL},
                                     {"shift", ST_ATTRIBUTE_REAL, 0, 0, shift, ST_NULL, ST_NULL}};
  st_value made[1] = {0};
  st_graph_apply(graph, "affine", 1, inputs, 2, attributes, 1, made);
  return made[0];
}

/* y = e^x */
static inline st_value st_op_exp(st_graph* graph, st_value x) {
  const st_value inputs[] = {x};
  st_value made[1] = {0};
  st_graph_apply(graph, "exp", 1, inputs, 0, ST_NULL, 1, made);
  return made[0];
}

/* y = ln x */
static inline st_value st_op_log(st_graph* graph, st_value x) {
  const st_value inputs[] = {x};
  st_value made[1] = {0};
  st_graph_apply(graph, "log", 1, inputs, 0, ST_NULL, 1, made);
  return made[0];
}

/* y = sqrt x */
static inline st_value st_op_sqrt(st_graph* graph, st_value x) {
  const st_value inputs[] = {x};
  st_value made[1] = {0};
  st_graph_apply(graph, "sqrt", 1, inputs, 0, ST_NULL, 1, made);
  return made[0];
}

/* y = |x| */
static inline st_value st_op_abs(st_graph* graph, st_value x) {
  const st_value inputs[] = {x};
  st_value made[1] = {0};
  st_graph_apply(graph, "abs", 1, inputs, 0, ST_NULL, 1, made);
  return made[0];
}

/* y = -x */
static inline st_value st_op_neg(st_graph* graph, st_value x) {
  const st_value inputs[] = {x};
  st_value made[1] = {0};
  st_graph_apply(graph, "neg", 1, inputs, 0, ST_NULL, 1, made);
  return made[0];
}

/* y = -1, 0 or 1; sign(NaN) is NaN */
static inline st_value st_op_sign(st_graph* graph, st_value x) {
  const st_value inputs[] = {x};
  st_value made[1] = {0};
  st_graph_apply(graph, "sign", 1, inputs, 0, ST_NULL, 1, made);
  return made[0];
}

/* y = min(max(x, low), high); gradient 0 on the bounds; low: default -inf; high: default inf */
static inline st_value st_op_clamp(st_graph* graph, st_value x, double low, double high) {
  const st_value inputs[] = {x};
  const st_attribute attributes[] = {{"low", ST_ATTRIBUTE_REAL, 0, 0, low, ST_NULL, ST_NULL},
                                     {"high", ST_ATTRIBUTE_REAL, 0, 0, high, ST_NULL, ST_NULL}};
  st_value made[1] = {0};
  st_graph_apply(graph, "clamp", 1, inputs, 2, attributes, 1, made);
  return made[0];
}

/* y = x Phi(x); approximate: tanh (GPT-2's) or erf (exact); approximate: tanh|erf */
static inline st_value st_op_gelu(st_graph* graph, st_value x, const char* approximate) {
  const st_value inputs[] = {x};
  const st_attribute attributes[] = {{"approximate", ST_ATTRIBUTE_WORD, 0, 0, 0, ST_NULL, approximate}};
  st_value made[1] = {0};
  st_graph_apply(graph, "gelu", 1, inputs, 1, attributes, 1, made);
  return made[0];
}

/* y = max(x, 0) */
static inline st_value st_op_relu(st_graph* graph, st_value x) {
  const st_value inputs[] = {x};
  st_value made[1] = {0};
  st_graph_apply(graph, "relu", 1, inputs, 0, ST_NULL, 1, made);
  return made[0];
}

/* y = x sigmoid(x) */
static inline st_value st_op_silu(st_graph* graph, st_value x) {
  const st_value inputs[] = {x};
  st_value made[1] = {0};
  st_graph_apply(graph, "silu", 1, inputs, 0, ST_NULL, 1, made);
  return made[0];
}

/* y = tanh x */
static inline st_value st_op_tanh(st_graph* graph, st_value x) {
  const st_value inputs[] = {x};
  st_value made[1] = {0};
  st_graph_apply(graph, "tanh", 1, inputs, 0, ST_NULL, 1, made);
  return made[0];
}

/* y = 1 / (1 + e^-x) */
static inline st_value st_op_sigmoid(st_graph* graph, st_value x) {
  const st_value inputs[] = {x};
  st_value made[1] = {0};
  st_graph_apply(graph, "sigmoid", 1, inputs, 0, ST_NULL, 1, made);
  return made[0];
}

/* y = x in another dtype; rounds to nearest even; float to integer truncates */
static inline st_value st_op_cast(st_graph* graph, st_value x, st_dtype dtype) {
  const st_value inputs[] = {x};
  const st_attribute attributes[] = {{"dtype", ST_ATTRIBUTE_INT, 0, dtype, 0, ST_NULL, ST_NULL}};
  st_value made[1] = {0};
  st_graph_apply(graph, "cast", 1, inputs, 1, attributes, 1, made);
  return made[0];
}

/* y = x * keep / (1 - rate), keep drawn anew for each element and step; rate 0: the recipe's; y = x outside training */
static inline st_value st_op_dropout(st_graph* graph, st_value x, double rate) {
  const st_value inputs[] = {x};
  const st_attribute attributes[] = {{"rate", ST_ATTRIBUTE_REAL, 0, 0, rate, ST_NULL, ST_NULL}};
  st_value made[1] = {0};
  st_graph_apply(graph, "dropout", 1, inputs, 1, attributes, 1, made);
  return made[0];
}

/* y = (x - mean) * rstd * gamma + beta over the last dimension; gamma and beta have the type of x, or f32 for a 16-bit x; mean and rstd are f32 (f64 for f64) of the leading dimensions; epsilon: default 1e-05 */
static inline st_value st_op_layer_norm(st_graph* graph, st_value x, st_value gamma, st_value beta, double epsilon, st_value* mean, st_value* rstd) {
  const st_value inputs[] = {x, gamma, beta};
  const st_attribute attributes[] = {{"epsilon", ST_ATTRIBUTE_REAL, 0, 0, epsilon, ST_NULL, ST_NULL}};
  st_value made[3] = {0};
  st_graph_apply(graph, "layer_norm", 3, inputs, 1, attributes, 3, made);
  if (mean != ST_NULL) *mean = made[1];
  if (rstd != ST_NULL) *rstd = made[2];
  return made[0];
}

/* y = x * rstd * gamma, rstd = 1 / sqrt(mean(x^2) + epsilon); gamma has the type of x, or f32 for a 16-bit x; epsilon: default 1e-05 */
static inline st_value st_op_rms_norm(st_graph* graph, st_value x, st_value gamma, double epsilon, st_value* rstd) {
  const st_value inputs[] = {x, gamma};
  const st_attribute attributes[] = {{"epsilon", ST_ATTRIBUTE_REAL, 0, 0, epsilon, ST_NULL, ST_NULL}};
  st_value made[2] = {0};
  st_graph_apply(graph, "rms_norm", 2, inputs, 1, attributes, 2, made);
  if (rstd != ST_NULL) *rstd = made[1];
  return made[0];
}

/* y = e^x / sum e^x along axis; axis: default -1 */
static inline st_value st_op_softmax(st_graph* graph, st_value x, int64_t axis) {
  const st_value inputs[] = {x};
  const st_attribute attributes[] = {{"axis", ST_ATTRIBUTE_INT, 0, axis, 0, ST_NULL, ST_NULL}};
  st_value made[1] = {0};
  st_graph_apply(graph, "softmax", 1, inputs, 1, attributes, 1, made);
  return made[0];
}

/* y = x - log sum e^x along axis; axis: default -1 */
static inline st_value st_op_log_softmax(st_graph* graph, st_value x, int64_t axis) {
  const st_value inputs[] = {x};
  const st_attribute attributes[] = {{"axis", ST_ATTRIBUTE_INT, 0, axis, 0, ST_NULL, ST_NULL}};
  st_value made[1] = {0};
  st_graph_apply(graph, "log_softmax", 1, inputs, 1, attributes, 1, made);
  return made[0];
}

/* o = softmax(scale q k^T) v. q [B, T, H, D], k and v [B, S, G, D], G divides H (grouped-query), scale 0: 1/sqrt(D); causal: query t sees keys 0..t+S-T; lse [B, H, T], f32 (f64 for f64), is log sum exp of each row's scores; a row that sees nothing gives 0 and -inf; causal: default 1 */
static inline st_value st_op_attention(st_graph* graph, st_value q, st_value k, st_value v, int32_t causal, double scale, st_value* lse) {
  const st_value inputs[] = {q, k, v};
  const st_attribute attributes[] = {{"causal", ST_ATTRIBUTE_BOOL, 0, causal, 0, ST_NULL, ST_NULL},
                                     {"scale", ST_ATTRIBUTE_REAL, 0, 0, scale, ST_NULL, ST_NULL}};
  st_value made[2] = {0};
  st_graph_apply(graph, "attention", 3, inputs, 2, attributes, 2, made);
  if (lse != ST_NULL) *lse = made[1];
  return made[0];
}

/* rotates pairs (d, d + D/2) of x [B, T, H, D] by (t + offset) * base^(-2d/D); inverse turns back; base: default 10000 */
static inline st_value st_op_rope(st_graph* graph, st_value x, double base, int64_t offset, int32_t inverse) {
  const st_value inputs[] = {x};
  const st_attribute attributes[] = {{"base", ST_ATTRIBUTE_REAL, 0, 0, base, ST_NULL, ST_NULL},
                                     {"offset", ST_ATTRIBUTE_INT, 0, offset, 0, ST_NULL, ST_NULL},
                                     {"inverse", ST_ATTRIBUTE_BOOL, 0, inverse, 0, ST_NULL, ST_NULL}};
  st_value made[1] = {0};
  st_graph_apply(graph, "rope", 1, inputs, 3, attributes, 1, made);
  return made[0];
}

/* y[..., :] = weight[tokens[...], :]; weight [V, C], tokens i32 or i64; a token outside 0..V-1 is an error naming its place */
static inline st_value st_op_embedding(st_graph* graph, st_value weight, st_value tokens) {
  const st_value inputs[] = {weight, tokens};
  st_value made[1] = {0};
  st_graph_apply(graph, "embedding", 2, inputs, 0, ST_NULL, 1, made);
  return made[0];
}

/* y[i][j] = x[i][index[i][j]] along axis (torch.gather); axis: default -1 */
static inline st_value st_op_gather(st_graph* graph, st_value x, st_value index, int64_t axis) {
  const st_value inputs[] = {x, index};
  const st_attribute attributes[] = {{"axis", ST_ATTRIBUTE_INT, 0, axis, 0, ST_NULL, ST_NULL}};
  st_value made[1] = {0};
  st_graph_apply(graph, "gather", 2, inputs, 1, attributes, 1, made);
  return made[0];
}

/* index (i32) of the first largest element; NaN is largest; axis: default -1 */
static inline st_value st_op_argmax(st_graph* graph, st_value x, int64_t axis, int32_t keep_dims) {
  const st_value inputs[] = {x};
  const st_attribute attributes[] = {{"axis", ST_ATTRIBUTE_INT, 0, axis, 0, ST_NULL, ST_NULL},
                                     {"keep_dims", ST_ATTRIBUTE_BOOL, 0, keep_dims, 0, ST_NULL, ST_NULL}};
  st_value made[1] = {0};
  st_graph_apply(graph, "argmax", 1, inputs, 2, attributes, 1, made);
  return made[0];
}

/* sum = -sum_r w_r log softmax(logits)[r, target_r], count = sum_r w_r over rows whose target is not ignore_index; logits [..., V], targets [...] i32 or i64; sum, count and dsum are f64 scalars, lse f32 (f64 for f64) [...]; weights: one per row. label_smoothing: the share of a row's weight spread evenly over all V classes (as in torch); z_loss: adds z_loss lse^2 to each row (PaLM, 2022); weights optional; ignore_index: default -100 */
static inline st_value st_op_cross_entropy(st_graph* graph, st_value logits, st_value targets, st_value weights, int64_t ignore_index, double label_smoothing, double z_loss, st_value* count, st_value* lse) {
  const st_value inputs[] = {logits, targets, weights};
  const st_attribute attributes[] = {{"ignore_index", ST_ATTRIBUTE_INT, 0, ignore_index, 0, ST_NULL, ST_NULL},
                                     {"label_smoothing", ST_ATTRIBUTE_REAL, 0, 0, label_smoothing, ST_NULL, ST_NULL},
                                     {"z_loss", ST_ATTRIBUTE_REAL, 0, 0, z_loss, ST_NULL, ST_NULL}};
  st_value made[3] = {0};
  st_graph_apply(graph, "cross_entropy", 3, inputs, 3, attributes, 3, made);
  if (count != ST_NULL) *count = made[1];
  if (lse != ST_NULL) *lse = made[2];
  return made[0];
}

/* sum = sum w (max(x, 0) - x t + log(1 + e^-|x|)), count = sum w (without weights: elements); weights optional */
static inline st_value st_op_bce_with_logits(st_graph* graph, st_value x, st_value target, st_value weights, st_value* count) {
  const st_value inputs[] = {x, target, weights};
  st_value made[2] = {0};
  st_graph_apply(graph, "bce_with_logits", 3, inputs, 0, ST_NULL, 2, made);
  if (count != ST_NULL) *count = made[1];
  return made[0];
}

/* sum = sum w (x - t)^2, count = sum w; weights optional */
static inline st_value st_op_mse(st_graph* graph, st_value x, st_value target, st_value weights, st_value* count) {
  const st_value inputs[] = {x, target, weights};
  st_value made[2] = {0};
  st_graph_apply(graph, "mse", 3, inputs, 0, ST_NULL, 2, made);
  if (count != ST_NULL) *count = made[1];
  return made[0];
}

/* sum = sum w (|d| <= delta ? d^2 / 2 : delta (|d| - delta / 2)), d = x - t; count = sum w; weights optional; delta: default 1 */
static inline st_value st_op_huber(st_graph* graph, st_value x, st_value target, st_value weights, double delta, st_value* count) {
  const st_value inputs[] = {x, target, weights};
  const st_attribute attributes[] = {{"delta", ST_ATTRIBUTE_REAL, 0, 0, delta, ST_NULL, ST_NULL}};
  st_value made[2] = {0};
  st_graph_apply(graph, "huber", 3, inputs, 1, attributes, 2, made);
  if (count != ST_NULL) *count = made[1];
  return made[0];
}

/* sum over axes; no axes: over all dimensions */
static inline st_value st_op_sum(st_graph* graph, st_value x, int32_t axes_count, const int64_t* axes, int32_t keep_dims) {
  const st_value inputs[] = {x};
  const st_attribute attributes[] = {{"axes", ST_ATTRIBUTE_INTS, axes_count, 0, 0, axes, ST_NULL},
                                     {"keep_dims", ST_ATTRIBUTE_BOOL, 0, keep_dims, 0, ST_NULL, ST_NULL}};
  st_value made[1] = {0};
  st_graph_apply(graph, "sum", 1, inputs, 2, attributes, 1, made);
  return made[0];
}

/* mean over axes; no axes: over all dimensions; over no elements: NaN */
static inline st_value st_op_mean(st_graph* graph, st_value x, int32_t axes_count, const int64_t* axes, int32_t keep_dims) {
  const st_value inputs[] = {x};
  const st_attribute attributes[] = {{"axes", ST_ATTRIBUTE_INTS, axes_count, 0, 0, axes, ST_NULL},
                                     {"keep_dims", ST_ATTRIBUTE_BOOL, 0, keep_dims, 0, ST_NULL, ST_NULL}};
  st_value made[1] = {0};
  st_graph_apply(graph, "mean", 1, inputs, 2, attributes, 1, made);
  return made[0];
}

/* maximum over axes; ties share the gradient evenly (torch.amax) */
static inline st_value st_op_max(st_graph* graph, st_value x, int32_t axes_count, const int64_t* axes, int32_t keep_dims) {
  const st_value inputs[] = {x};
  const st_attribute attributes[] = {{"axes", ST_ATTRIBUTE_INTS, axes_count, 0, 0, axes, ST_NULL},
                                     {"keep_dims", ST_ATTRIBUTE_BOOL, 0, keep_dims, 0, ST_NULL, ST_NULL}};
  st_value made[1] = {0};
  st_graph_apply(graph, "max", 1, inputs, 2, attributes, 1, made);
  return made[0];
}

/* the same elements in another shape; no copy */
static inline st_value st_op_reshape(st_graph* graph, st_value x, int32_t shape_count, const int64_t* shape) {
  const st_value inputs[] = {x};
  const st_attribute attributes[] = {{"shape", ST_ATTRIBUTE_INTS, shape_count, 0, 0, shape, ST_NULL}};
  st_value made[1] = {0};
  st_graph_apply(graph, "reshape", 1, inputs, 1, attributes, 1, made);
  return made[0];
}

/* repeats dimensions of size 1 */
static inline st_value st_op_broadcast_to(st_graph* graph, st_value x, int32_t shape_count, const int64_t* shape) {
  const st_value inputs[] = {x};
  const st_attribute attributes[] = {{"shape", ST_ATTRIBUTE_INTS, shape_count, 0, 0, shape, ST_NULL}};
  st_value made[1] = {0};
  st_graph_apply(graph, "broadcast_to", 1, inputs, 1, attributes, 1, made);
  return made[0];
}

/* y dimension i is x dimension order[i] */
static inline st_value st_op_transpose(st_graph* graph, st_value x, int32_t order_count, const int64_t* order) {
  const st_value inputs[] = {x};
  const st_attribute attributes[] = {{"order", ST_ATTRIBUTE_INTS, order_count, 0, 0, order, ST_NULL}};
  st_value made[1] = {0};
  st_graph_apply(graph, "transpose", 1, inputs, 1, attributes, 1, made);
  return made[0];
}

/* x[start:end] along axis */
static inline st_value st_op_slice(st_graph* graph, st_value x, int64_t axis, int64_t start, int64_t end) {
  const st_value inputs[] = {x};
  const st_attribute attributes[] = {{"axis", ST_ATTRIBUTE_INT, 0, axis, 0, ST_NULL, ST_NULL},
                                     {"start", ST_ATTRIBUTE_INT, 0, start, 0, ST_NULL, ST_NULL},
                                     {"end", ST_ATTRIBUTE_INT, 0, end, 0, ST_NULL, ST_NULL}};
  st_value made[1] = {0};
  st_graph_apply(graph, "slice", 1, inputs, 3, attributes, 1, made);
  return made[0];
}

/* zeros before and after along axis */
static inline st_value st_op_pad(st_graph* graph, st_value x, int64_t axis, int64_t before, int64_t after) {
  const st_value inputs[] = {x};
  const st_attribute attributes[] = {{"axis", ST_ATTRIBUTE_INT, 0, axis, 0, ST_NULL, ST_NULL},
                                     {"before", ST_ATTRIBUTE_INT, 0, before, 0, ST_NULL, ST_NULL},
                                     {"after", ST_ATTRIBUTE_INT, 0, after, 0, ST_NULL, ST_NULL}};
  st_value made[1] = {0};
  st_graph_apply(graph, "pad", 1, inputs, 3, attributes, 1, made);
  return made[0];
}

/* one output for each of sizes along axis; the sizes sum to the dimension; axis: default -1 */
static inline st_value st_op_split(st_graph* graph, st_value x, int64_t axis, int32_t sizes_count, const int64_t* sizes, int32_t values_count, st_value* values) {
  const st_value inputs[] = {x};
  const st_attribute attributes[] = {{"axis", ST_ATTRIBUTE_INT, 0, axis, 0, ST_NULL, ST_NULL},
                                     {"sizes", ST_ATTRIBUTE_INTS, sizes_count, 0, 0, sizes, ST_NULL}};
  st_graph_apply(graph, "split", 1, inputs, 2, attributes, values_count, values);
  return values_count > 0 && values != ST_NULL ? values[0] : 0;
}

/* joins along axis; axis: default -1 */
static inline st_value st_op_concat(st_graph* graph, int32_t xs_count, const st_value* xs, int64_t axis) {
  const st_attribute attributes[] = {{"axis", ST_ATTRIBUTE_INT, 0, axis, 0, ST_NULL, ST_NULL}};
  st_value made[1] = {0};
  st_graph_apply(graph, "concat", xs_count, xs, 1, attributes, 1, made);
  return made[0];
}

ST_END
/* clang-format on */
#endif
