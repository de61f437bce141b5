package org.scaletrain;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Every op as a method. Parameters: inputs, then attributes; all attributes may be omitted together if each has a default. Returns
 * the first result; further ones are its {@link Value#more}. An optional input may be null. Throws the graph's error if the call is
 * wrong.
 *
 * <p>Generated from {@code runtime/ir/ops.def} by {@code capi/generators/ops_header.cpp}: change the row, not this file.
 */
public final class Ops {
  private Ops() {}

  /** attributes: alternating names and values. */
  private static Value op(Graph graph, String name, int results, List<Value> inputs, Object... attributes) {
    Map<String, Object> all = new LinkedHashMap<>();
    for (int i = 0; i < attributes.length; i += 2) all.put((String) attributes[i], attributes[i + 1]);
    return graph.op(name, inputs, all, results);
  }

  private static Value op(String name, int results, List<Value> inputs, Object... attributes) {
    return op(Graph.of(inputs), name, results, inputs, attributes);
  }

  /** a constant in every element; value: default 0; dtype: default f32. */
  public static Value fill(Graph graph, long[] shape) {
    return op(graph, "fill", 1, List.of(), "shape", shape);
  }

  /** a constant in every element; value: default 0; dtype: default f32. */
  public static Value fill(Graph graph, long[] shape, double value, DType dtype) {
    return op(graph, "fill", 1, List.of(), "shape", shape, "value", value, "dtype", dtype);
  }

  /**
   * c = op(a) op(b) over the last two dimensions; leading dimensions broadcast. [..., M, K] x [..., K, N] -&gt; [..., M, N];
   * transposeA: default false; transposeB: default false.
   */
  public static Value matmul(Value a, Value b) {
    return op("matmul", 1, Arrays.asList(a, b));
  }

  /**
   * c = op(a) op(b) over the last two dimensions; leading dimensions broadcast. [..., M, K] x [..., K, N] -&gt; [..., M, N];
   * transposeA: default false; transposeB: default false.
   */
  public static Value matmul(Value a, Value b, boolean transposeA, boolean transposeB) {
    return op("matmul", 1, Arrays.asList(a, b), "transpose_a", transposeA, "transpose_b", transposeB);
  }

  /**
   * y = x weight + bias: [..., K] x [K, N] (transpose_weight: [N, K]) + [N]; fuse makes it from matmul and add; transposeWeight:
   * default false.
   */
  public static Value linear(Value x, Value weight, Value bias) {
    return op("linear", 1, Arrays.asList(x, weight, bias));
  }

  /**
   * y = x weight + bias: [..., K] x [K, N] (transpose_weight: [N, K]) + [N]; fuse makes it from matmul and add; transposeWeight:
   * default false.
   */
  public static Value linear(Value x, Value weight, Value bias, boolean transposeWeight) {
    return op("linear", 1, Arrays.asList(x, weight, bias), "transpose_weight", transposeWeight);
  }

  /** c = a + b. */
  public static Value add(Value a, Value b) {
    return op("add", 1, Arrays.asList(a, b));
  }

  /** c = a - b. */
  public static Value sub(Value a, Value b) {
    return op("sub", 1, Arrays.asList(a, b));
  }

  /** c = a * b. */
  public static Value mul(Value a, Value b) {
    return op("mul", 1, Arrays.asList(a, b));
  }

  /** c = a / b. */
  public static Value div(Value a, Value b) {
    return op("div", 1, Arrays.asList(a, b));
  }

  /** c = min(a, b); NaN wins; the gradient is halved on ties. */
  public static Value minimum(Value a, Value b) {
    return op("minimum", 1, Arrays.asList(a, b));
  }

  /** c = max(a, b); NaN wins; the gradient is halved on ties. */
  public static Value maximum(Value a, Value b) {
    return op("maximum", 1, Arrays.asList(a, b));
  }

  /** c = a ^ b. */
  public static Value pow(Value a, Value b) {
    return op("pow", 1, Arrays.asList(a, b));
  }

  /** c = a test b as bool; test: equal|not_equal|less|less_equal|greater|greater_equal; test: default equal. */
  public static Value compare(Value a, Value b) {
    return op("compare", 1, Arrays.asList(a, b));
  }

  /** c = a test b as bool; test: equal|not_equal|less|less_equal|greater|greater_equal; test: default equal. */
  public static Value compare(Value a, Value b, String test) {
    return op("compare", 1, Arrays.asList(a, b), "test", test);
  }

  /** c = condition ? a : b; the three broadcast. */
  public static Value where(Value condition, Value a, Value b) {
    return op("where", 1, Arrays.asList(condition, a, b));
  }

  /** y = scale * x + shift; scale: default 1; shift: default 0. */
  public static Value affine(Value x) {
    return op("affine", 1, Arrays.asList(x));
  }

  /** y = scale * x + shift; scale: default 1; shift: default 0. */
  public static Value affine(Value x, double scale, double shift) {
    return op("affine", 1, Arrays.asList(x), "scale", scale, "shift", shift);
  }

  /** y = e^x. */
  public static Value exp(Value x) {
    return op("exp", 1, Arrays.asList(x));
  }

  /** y = ln x. */
  public static Value log(Value x) {
    return op("log", 1, Arrays.asList(x));
  }

  /** y = sqrt x. */
  public static Value sqrt(Value x) {
    return op("sqrt", 1, Arrays.asList(x));
  }

  /** y = |x|. */
  public static Value abs(Value x) {
    return op("abs", 1, Arrays.asList(x));
  }

  /** y = -x. */
  public static Value neg(Value x) {
    return op("neg", 1, Arrays.asList(x));
  }

  /** y = -1, 0 or 1; sign(NaN) is NaN. */
  public static Value sign(Value x) {
    return op("sign", 1, Arrays.asList(x));
  }

  /** y = min(max(x, low), high); gradient 0 on the bounds; low: default -inf; high: default inf. */
  public static Value clamp(Value x) {
    return op("clamp", 1, Arrays.asList(x));
  }

  /** y = min(max(x, low), high); gradient 0 on the bounds; low: default -inf; high: default inf. */
  public static Value clamp(Value x, double low, double high) {
    return op("clamp", 1, Arrays.asList(x), "low", low, "high", high);
  }

  /** y = x Phi(x); approximate: tanh (GPT-2's) or erf (exact); approximate: tanh|erf; approximate: default tanh. */
  public static Value gelu(Value x) {
    return op("gelu", 1, Arrays.asList(x));
  }

  /** y = x Phi(x); approximate: tanh (GPT-2's) or erf (exact); approximate: tanh|erf; approximate: default tanh. */
  public static Value gelu(Value x, String approximate) {
    return op("gelu", 1, Arrays.asList(x), "approximate", approximate);
  }

  /** y = max(x, 0). */
  public static Value relu(Value x) {
    return op("relu", 1, Arrays.asList(x));
  }

  /** y = x sigmoid(x). */
  public static Value silu(Value x) {
    return op("silu", 1, Arrays.asList(x));
  }

  /** y = tanh x. */
  public static Value tanh(Value x) {
    return op("tanh", 1, Arrays.asList(x));
  }

  /** y = 1 / (1 + e^-x). */
  public static Value sigmoid(Value x) {
    return op("sigmoid", 1, Arrays.asList(x));
  }

  /** y = x in another dtype; rounds to nearest even; float to integer truncates. */
  public static Value cast(Value x, DType dtype) {
    return op("cast", 1, Arrays.asList(x), "dtype", dtype);
  }

  /**
   * y = x * keep / (1 - rate), keep drawn anew for each element and step; rate 0: the recipe's; y = x outside training; rate: default
   * 0.
   */
  public static Value dropout(Value x) {
    return op("dropout", 1, Arrays.asList(x));
  }

  /**
   * y = x * keep / (1 - rate), keep drawn anew for each element and step; rate 0: the recipe's; y = x outside training; rate: default
   * 0.
   */
  public static Value dropout(Value x, double rate) {
    return op("dropout", 1, Arrays.asList(x), "rate", rate);
  }

  /**
   * y = (x - mean) * rstd * gamma + beta over the last dimension; gamma and beta have the type of x, or f32 for a 16-bit x; mean and
   * rstd are f32 (f64 for f64) of the leading dimensions; epsilon: default 1e-05; more: mean, rstd.
   */
  public static Value layerNorm(Value x, Value gamma, Value beta) {
    return op("layer_norm", 3, Arrays.asList(x, gamma, beta));
  }

  /**
   * y = (x - mean) * rstd * gamma + beta over the last dimension; gamma and beta have the type of x, or f32 for a 16-bit x; mean and
   * rstd are f32 (f64 for f64) of the leading dimensions; epsilon: default 1e-05; more: mean, rstd.
   */
  public static Value layerNorm(Value x, Value gamma, Value beta, double epsilon) {
    return op("layer_norm", 3, Arrays.asList(x, gamma, beta), "epsilon", epsilon);
  }

  /**
   * y = x * rstd * gamma, rstd = 1 / sqrt(mean(x^2) + epsilon); gamma has the type of x, or f32 for a 16-bit x; epsilon: default
   * 1e-05; more: rstd.
   */
  public static Value rmsNorm(Value x, Value gamma) {
    return op("rms_norm", 2, Arrays.asList(x, gamma));
  }

  /**
   * y = x * rstd * gamma, rstd = 1 / sqrt(mean(x^2) + epsilon); gamma has the type of x, or f32 for a 16-bit x; epsilon: default
   * 1e-05; more: rstd.
   */
  public static Value rmsNorm(Value x, Value gamma, double epsilon) {
    return op("rms_norm", 2, Arrays.asList(x, gamma), "epsilon", epsilon);
  }

  /** y = e^x / sum e^x along axis; axis: default -1. */
  public static Value softmax(Value x) {
    return op("softmax", 1, Arrays.asList(x));
  }

  /** y = e^x / sum e^x along axis; axis: default -1. */
  public static Value softmax(Value x, long axis) {
    return op("softmax", 1, Arrays.asList(x), "axis", axis);
  }

  /** y = x - log sum e^x along axis; axis: default -1. */
  public static Value logSoftmax(Value x) {
    return op("log_softmax", 1, Arrays.asList(x));
  }

  /** y = x - log sum e^x along axis; axis: default -1. */
  public static Value logSoftmax(Value x, long axis) {
    return op("log_softmax", 1, Arrays.asList(x), "axis", axis);
  }

  /**
   * o = softmax(scale q k^T) v. q [B, T, H, D], k and v [B, S, G, D], G divides H (grouped-query), scale 0: 1/sqrt(D); causal: query t
   * sees keys 0..t+S-T; lse [B, H, T], f32 (f64 for f64), is log sum exp of each row's scores; a row that sees nothing gives 0 and
   * -inf; causal: default true; scale: default 0; more: lse.
   */
  public static Value attention(Value q, Value k, Value v) {
    return op("attention", 2, Arrays.asList(q, k, v));
  }

  /**
   * o = softmax(scale q k^T) v. q [B, T, H, D], k and v [B, S, G, D], G divides H (grouped-query), scale 0: 1/sqrt(D); causal: query t
   * sees keys 0..t+S-T; lse [B, H, T], f32 (f64 for f64), is log sum exp of each row's scores; a row that sees nothing gives 0 and
   * -inf; causal: default true; scale: default 0; more: lse.
   */
  public static Value attention(Value q, Value k, Value v, boolean causal, double scale) {
    return op("attention", 2, Arrays.asList(q, k, v), "causal", causal, "scale", scale);
  }

  /**
   * rotates pairs (d, d + D/2) of x [B, T, H, D] by (t + offset) * base^(-2d/D); inverse turns back; base: default 10000; offset:
   * default 0; inverse: default false.
   */
  public static Value rope(Value x) {
    return op("rope", 1, Arrays.asList(x));
  }

  /**
   * rotates pairs (d, d + D/2) of x [B, T, H, D] by (t + offset) * base^(-2d/D); inverse turns back; base: default 10000; offset:
   * default 0; inverse: default false.
   */
  public static Value rope(Value x, double base, long offset, boolean inverse) {
    return op("rope", 1, Arrays.asList(x), "base", base, "offset", offset, "inverse", inverse);
  }

  /** y[..., :] = weight[tokens[...], :]; weight [V, C], tokens i32 or i64; a token outside 0..V-1 is an error naming its place. */
  public static Value embedding(Value weight, Value tokens) {
    return op("embedding", 1, Arrays.asList(weight, tokens));
  }

  /** y[i][j] = x[i][index[i][j]] along axis (torch.gather); axis: default -1. */
  public static Value gather(Value x, Value index) {
    return op("gather", 1, Arrays.asList(x, index));
  }

  /** y[i][j] = x[i][index[i][j]] along axis (torch.gather); axis: default -1. */
  public static Value gather(Value x, Value index, long axis) {
    return op("gather", 1, Arrays.asList(x, index), "axis", axis);
  }

  /** index (i32) of the first largest element; NaN is largest; axis: default -1; keepDims: default false. */
  public static Value argmax(Value x) {
    return op("argmax", 1, Arrays.asList(x));
  }

  /** index (i32) of the first largest element; NaN is largest; axis: default -1; keepDims: default false. */
  public static Value argmax(Value x, long axis, boolean keepDims) {
    return op("argmax", 1, Arrays.asList(x), "axis", axis, "keep_dims", keepDims);
  }

  /**
   * sum = -sum_r w_r log softmax(logits)[r, target_r], count = sum_r w_r over rows whose target is not ignore_index; logits [..., V],
   * targets [...] i32 or i64; sum, count and dsum are f64 scalars, lse f32 (f64 for f64) [...]; weights: one per row. label_smoothing:
   * the share of a row's weight spread evenly over all V classes (as in torch); z_loss: adds z_loss lse^2 to each row (PaLM, 2022);
   * ignoreIndex: default -100; labelSmoothing: default 0; zLoss: default 0; more: count, lse.
   */
  public static Value crossEntropy(Value logits, Value targets) {
    return op("cross_entropy", 3, Arrays.asList(logits, targets));
  }

  /**
   * sum = -sum_r w_r log softmax(logits)[r, target_r], count = sum_r w_r over rows whose target is not ignore_index; logits [..., V],
   * targets [...] i32 or i64; sum, count and dsum are f64 scalars, lse f32 (f64 for f64) [...]; weights: one per row. label_smoothing:
   * the share of a row's weight spread evenly over all V classes (as in torch); z_loss: adds z_loss lse^2 to each row (PaLM, 2022);
   * ignoreIndex: default -100; labelSmoothing: default 0; zLoss: default 0; more: count, lse.
   */
  public static Value crossEntropy(Value logits, Value targets, Value weights) {
    return op("cross_entropy", 3, Arrays.asList(logits, targets, weights));
  }

  /**
   * sum = -sum_r w_r log softmax(logits)[r, target_r], count = sum_r w_r over rows whose target is not ignore_index; logits [..., V],
   * targets [...] i32 or i64; sum, count and dsum are f64 scalars, lse f32 (f64 for f64) [...]; weights: one per row. label_smoothing:
   * the share of a row's weight spread evenly over all V classes (as in torch); z_loss: adds z_loss lse^2 to each row (PaLM, 2022);
   * ignoreIndex: default -100; labelSmoothing: default 0; zLoss: default 0; more: count, lse.
   */
  public static Value crossEntropy(Value logits, Value targets, Value weights, long ignoreIndex, double labelSmoothing, double zLoss) {
    return op("cross_entropy", 3, Arrays.asList(logits, targets, weights), "ignore_index", ignoreIndex, "label_smoothing", labelSmoothing, "z_loss", zLoss);
  }

  /** sum = sum w (max(x, 0) - x t + log(1 + e^-|x|)), count = sum w (without weights: elements); more: count. */
  public static Value bceWithLogits(Value x, Value target) {
    return op("bce_with_logits", 2, Arrays.asList(x, target));
  }

  /** sum = sum w (max(x, 0) - x t + log(1 + e^-|x|)), count = sum w (without weights: elements); more: count. */
  public static Value bceWithLogits(Value x, Value target, Value weights) {
    return op("bce_with_logits", 2, Arrays.asList(x, target, weights));
  }

  /** sum = sum w (x - t)^2, count = sum w; more: count. */
  public static Value mse(Value x, Value target) {
    return op("mse", 2, Arrays.asList(x, target));
  }

  /** sum = sum w (x - t)^2, count = sum w; more: count. */
  public static Value mse(Value x, Value target, Value weights) {
    return op("mse", 2, Arrays.asList(x, target, weights));
  }

  /** sum = sum w (|d| &lt;= delta ? d^2 / 2 : delta (|d| - delta / 2)), d = x - t; count = sum w; delta: default 1; more: count. */
  public static Value huber(Value x, Value target) {
    return op("huber", 2, Arrays.asList(x, target));
  }

  /** sum = sum w (|d| &lt;= delta ? d^2 / 2 : delta (|d| - delta / 2)), d = x - t; count = sum w; delta: default 1; more: count. */
  public static Value huber(Value x, Value target, Value weights) {
    return op("huber", 2, Arrays.asList(x, target, weights));
  }

  /** sum = sum w (|d| &lt;= delta ? d^2 / 2 : delta (|d| - delta / 2)), d = x - t; count = sum w; delta: default 1; more: count. */
  public static Value huber(Value x, Value target, Value weights, double delta) {
    return op("huber", 2, Arrays.asList(x, target, weights), "delta", delta);
  }

  /** sum over axes; no axes: over all dimensions; axes: default none; keepDims: default false. */
  public static Value sum(Value x) {
    return op("sum", 1, Arrays.asList(x));
  }

  /** sum over axes; no axes: over all dimensions; axes: default none; keepDims: default false. */
  public static Value sum(Value x, long[] axes, boolean keepDims) {
    return op("sum", 1, Arrays.asList(x), "axes", axes, "keep_dims", keepDims);
  }

  /** mean over axes; no axes: over all dimensions; over no elements: NaN; axes: default none; keepDims: default false. */
  public static Value mean(Value x) {
    return op("mean", 1, Arrays.asList(x));
  }

  /** mean over axes; no axes: over all dimensions; over no elements: NaN; axes: default none; keepDims: default false. */
  public static Value mean(Value x, long[] axes, boolean keepDims) {
    return op("mean", 1, Arrays.asList(x), "axes", axes, "keep_dims", keepDims);
  }

  /** maximum over axes; ties share the gradient evenly (torch.amax); axes: default none; keepDims: default false. */
  public static Value max(Value x) {
    return op("max", 1, Arrays.asList(x));
  }

  /** maximum over axes; ties share the gradient evenly (torch.amax); axes: default none; keepDims: default false. */
  public static Value max(Value x, long[] axes, boolean keepDims) {
    return op("max", 1, Arrays.asList(x), "axes", axes, "keep_dims", keepDims);
  }

  /** the same elements in another shape; no copy. */
  public static Value reshape(Value x, long[] shape) {
    return op("reshape", 1, Arrays.asList(x), "shape", shape);
  }

  /** repeats dimensions of size 1. */
  public static Value broadcastTo(Value x, long[] shape) {
    return op("broadcast_to", 1, Arrays.asList(x), "shape", shape);
  }

  /** y dimension i is x dimension order[i]. */
  public static Value transpose(Value x, long[] order) {
    return op("transpose", 1, Arrays.asList(x), "order", order);
  }

  /** x[start:end] along axis; start: default 0. */
  public static Value slice(Value x, long axis, long end) {
    return op("slice", 1, Arrays.asList(x), "axis", axis, "end", end);
  }

  /** x[start:end] along axis; start: default 0. */
  public static Value slice(Value x, long axis, long start, long end) {
    return op("slice", 1, Arrays.asList(x), "axis", axis, "start", start, "end", end);
  }

  /** zeros before and after along axis; before: default 0; after: default 0. */
  public static Value pad(Value x, long axis) {
    return op("pad", 1, Arrays.asList(x), "axis", axis);
  }

  /** zeros before and after along axis; before: default 0; after: default 0. */
  public static Value pad(Value x, long axis, long before, long after) {
    return op("pad", 1, Arrays.asList(x), "axis", axis, "before", before, "after", after);
  }

  /** one output for each of sizes along axis; the sizes sum to the dimension; axis: default -1. */
  public static List<Value> split(Value x, long[] sizes) {
    Value first = op("split", sizes.length, Arrays.asList(x), "sizes", sizes);
    List<Value> all = new ArrayList<>(List.of(first));
    all.addAll(first.more());
    return List.copyOf(all);
  }

  /** one output for each of sizes along axis; the sizes sum to the dimension; axis: default -1. */
  public static List<Value> split(Value x, long axis, long[] sizes) {
    Value first = op("split", sizes.length, Arrays.asList(x), "axis", axis, "sizes", sizes);
    List<Value> all = new ArrayList<>(List.of(first));
    all.addAll(first.more());
    return List.copyOf(all);
  }

  /** joins along axis; axis: default -1. */
  public static Value concat(List<Value> xs) {
    return op("concat", 1, xs);
  }

  /** joins along axis; axis: default -1. */
  public static Value concat(List<Value> xs, long axis) {
    return op("concat", 1, xs, "axis", axis);
  }
}
