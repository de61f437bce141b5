package org.scaletrain;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/**
 * Every op as a method: inputs, then attributes, which may be left out all together where each has a usual value. Gives the first
 * result; further ones are its {@link Value#more}. An input that is optional may be null. Throws what the graph says when the call is
 * wrong.
 *
 * <p>Made from {@code runtime/ir/ops.def} by {@code capi/src/ops_header.cpp}: change the row, not this file.
 */
public final class Ops {
  private Ops() {}

  /** a constant in every element; value is usually 0; dtype is usually f32. */
  public static Value fill(Graph graph, long[] shape) {
    return graph.op("fill", List.of(), Map.ofEntries(Map.entry("shape", shape)), 1);
  }

  /** a constant in every element; value is usually 0; dtype is usually f32. */
  public static Value fill(Graph graph, long[] shape, double value, DType dtype) {
    return graph.op("fill", List.of(), Map.ofEntries(Map.entry("shape", shape), Map.entry("value", value), Map.entry("dtype", dtype)), 1);
  }

  /** c = op(a) op(b) over the last two dimensions; leading dimensions broadcast. [..., M, K] x [..., K, N] -&gt; [..., M, N]; transposeA is usually false; transposeB is usually false. */
  public static Value matmul(Value a, Value b) {
    return Graph.of(Arrays.asList(a, b)).op("matmul", Arrays.asList(a, b), Map.of(), 1);
  }

  /** c = op(a) op(b) over the last two dimensions; leading dimensions broadcast. [..., M, K] x [..., K, N] -&gt; [..., M, N]; transposeA is usually false; transposeB is usually false. */
  public static Value matmul(Value a, Value b, boolean transposeA, boolean transposeB) {
    return Graph.of(Arrays.asList(a, b)).op("matmul", Arrays.asList(a, b), Map.ofEntries(Map.entry("transpose_a", transposeA), Map.entry("transpose_b", transposeB)), 1);
  }

  /** y = x weight + bias: [..., K] x [K, N] (transpose_weight: [N, K]) + [N]; what fuse makes of matmul and add; transposeWeight is usually false. */
  public static Value linear(Value x, Value weight, Value bias) {
    return Graph.of(Arrays.asList(x, weight, bias)).op("linear", Arrays.asList(x, weight, bias), Map.of(), 1);
  }

  /** y = x weight + bias: [..., K] x [K, N] (transpose_weight: [N, K]) + [N]; what fuse makes of matmul and add; transposeWeight is usually false. */
  public static Value linear(Value x, Value weight, Value bias, boolean transposeWeight) {
    return Graph.of(Arrays.asList(x, weight, bias)).op("linear", Arrays.asList(x, weight, bias), Map.ofEntries(Map.entry("transpose_weight", transposeWeight)), 1);
  }

  /** c = a + b. */
  public static Value add(Value a, Value b) {
    return Graph.of(Arrays.asList(a, b)).op("add", Arrays.asList(a, b), Map.of(), 1);
  }

  /** c = a - b. */
  public static Value sub(Value a, Value b) {
    return Graph.of(Arrays.asList(a, b)).op("sub", Arrays.asList(a, b), Map.of(), 1);
  }

  /** c = a * b. */
  public static Value mul(Value a, Value b) {
    return Graph.of(Arrays.asList(a, b)).op("mul", Arrays.asList(a, b), Map.of(), 1);
  }

  /** c = a / b. */
  public static Value div(Value a, Value b) {
    return Graph.of(Arrays.asList(a, b)).op("div", Arrays.asList(a, b), Map.of(), 1);
  }

  /** c = min(a, b); NaN wins; the gradient is halved on ties. */
  public static Value minimum(Value a, Value b) {
    return Graph.of(Arrays.asList(a, b)).op("minimum", Arrays.asList(a, b), Map.of(), 1);
  }

  /** c = max(a, b); NaN wins; the gradient is halved on ties. */
  public static Value maximum(Value a, Value b) {
    return Graph.of(Arrays.asList(a, b)).op("maximum", Arrays.asList(a, b), Map.of(), 1);
  }

  /** c = a ^ b. */
  public static Value pow(Value a, Value b) {
    return Graph.of(Arrays.asList(a, b)).op("pow", Arrays.asList(a, b), Map.of(), 1);
  }

  /** c = a test b as bool; test: equal|not_equal|less|less_equal|greater|greater_equal; test is usually equal. */
  public static Value compare(Value a, Value b) {
    return Graph.of(Arrays.asList(a, b)).op("compare", Arrays.asList(a, b), Map.of(), 1);
  }

  /** c = a test b as bool; test: equal|not_equal|less|less_equal|greater|greater_equal; test is usually equal. */
  public static Value compare(Value a, Value b, String test) {
    return Graph.of(Arrays.asList(a, b)).op("compare", Arrays.asList(a, b), Map.ofEntries(Map.entry("test", test)), 1);
  }

  /** c = condition ? a : b; the three broadcast. */
  public static Value where(Value condition, Value a, Value b) {
    return Graph.of(Arrays.asList(condition, a, b)).op("where", Arrays.asList(condition, a, b), Map.of(), 1);
  }

  /** y = scale * x + shift; scale is usually 1; shift is usually 0. */
  public static Value affine(Value x) {
    return Graph.of(Arrays.asList(x)).op("affine", Arrays.asList(x), Map.of(), 1);
  }

  /** y = scale * x + shift; scale is usually 1; shift is usually 0. */
  public static Value affine(Value x, double scale, double shift) {
    return Graph.of(Arrays.asList(x)).op("affine", Arrays.asList(x), Map.ofEntries(Map.entry("scale", scale), Map.entry("shift", shift)), 1);
  }

  /** y = e^x. */
  public static Value exp(Value x) {
    return Graph.of(Arrays.asList(x)).op("exp", Arrays.asList(x), Map.of(), 1);
  }

  /** y = ln x. */
  public static Value log(Value x) {
    return Graph.of(Arrays.asList(x)).op("log", Arrays.asList(x), Map.of(), 1);
  }

  /** y = sqrt x. */
  public static Value sqrt(Value x) {
    return Graph.of(Arrays.asList(x)).op("sqrt", Arrays.asList(x), Map.of(), 1);
  }

  /** y = |x|. */
  public static Value abs(Value x) {
    return Graph.of(Arrays.asList(x)).op("abs", Arrays.asList(x), Map.of(), 1);
  }

  /** y = -x. */
  public static Value neg(Value x) {
    return Graph.of(Arrays.asList(x)).op("neg", Arrays.asList(x), Map.of(), 1);
  }

  /** y = -1, 0 or 1; sign(NaN) is NaN. */
  public static Value sign(Value x) {
    return Graph.of(Arrays.asList(x)).op("sign", Arrays.asList(x), Map.of(), 1);
  }

  /** y = min(max(x, low), high); gradient 0 on the bounds; low is usually -inf; high is usually inf. */
  public static Value clamp(Value x) {
    return Graph.of(Arrays.asList(x)).op("clamp", Arrays.asList(x), Map.of(), 1);
  }

  /** y = min(max(x, low), high); gradient 0 on the bounds; low is usually -inf; high is usually inf. */
  public static Value clamp(Value x, double low, double high) {
    return Graph.of(Arrays.asList(x)).op("clamp", Arrays.asList(x), Map.ofEntries(Map.entry("low", low), Map.entry("high", high)), 1);
  }

  /** y = x Phi(x); approximate: tanh (GPT-2's) or erf (exact); approximate: tanh|erf; approximate is usually tanh. */
  public static Value gelu(Value x) {
    return Graph.of(Arrays.asList(x)).op("gelu", Arrays.asList(x), Map.of(), 1);
  }

  /** y = x Phi(x); approximate: tanh (GPT-2's) or erf (exact); approximate: tanh|erf; approximate is usually tanh. */
  public static Value gelu(Value x, String approximate) {
    return Graph.of(Arrays.asList(x)).op("gelu", Arrays.asList(x), Map.ofEntries(Map.entry("approximate", approximate)), 1);
  }

  /** y = max(x, 0). */
  public static Value relu(Value x) {
    return Graph.of(Arrays.asList(x)).op("relu", Arrays.asList(x), Map.of(), 1);
  }

  /** y = x sigmoid(x). */
  public static Value silu(Value x) {
    return Graph.of(Arrays.asList(x)).op("silu", Arrays.asList(x), Map.of(), 1);
  }

  /** y = tanh x. */
  public static Value tanh(Value x) {
    return Graph.of(Arrays.asList(x)).op("tanh", Arrays.asList(x), Map.of(), 1);
  }

  /** y = 1 / (1 + e^-x). */
  public static Value sigmoid(Value x) {
    return Graph.of(Arrays.asList(x)).op("sigmoid", Arrays.asList(x), Map.of(), 1);
  }

  /** y = x in another dtype; rounds to nearest even; float to integer truncates. */
  public static Value cast(Value x, DType dtype) {
    return Graph.of(Arrays.asList(x)).op("cast", Arrays.asList(x), Map.ofEntries(Map.entry("dtype", dtype)), 1);
  }

  /** y = x * keep / (1 - rate), keep drawn anew for each element and step; rate 0: the recipe's; y = x outside training; rate is usually 0. */
  public static Value dropout(Value x) {
    return Graph.of(Arrays.asList(x)).op("dropout", Arrays.asList(x), Map.of(), 1);
  }

  /** y = x * keep / (1 - rate), keep drawn anew for each element and step; rate 0: the recipe's; y = x outside training; rate is usually 0. */
  public static Value dropout(Value x, double rate) {
    return Graph.of(Arrays.asList(x)).op("dropout", Arrays.asList(x), Map.ofEntries(Map.entry("rate", rate)), 1);
  }

  /** y = (x - mean) * rstd * gamma + beta over the last dimension; mean and rstd are f32 (f64 for f64) of the leading dimensions; epsilon is usually 1e-05; more: mean, rstd. */
  public static Value layerNorm(Value x, Value gamma, Value beta) {
    return Graph.of(Arrays.asList(x, gamma, beta)).op("layer_norm", Arrays.asList(x, gamma, beta), Map.of(), 3);
  }

  /** y = (x - mean) * rstd * gamma + beta over the last dimension; mean and rstd are f32 (f64 for f64) of the leading dimensions; epsilon is usually 1e-05; more: mean, rstd. */
  public static Value layerNorm(Value x, Value gamma, Value beta, double epsilon) {
    return Graph.of(Arrays.asList(x, gamma, beta)).op("layer_norm", Arrays.asList(x, gamma, beta), Map.ofEntries(Map.entry("epsilon", epsilon)), 3);
  }

  /** y = x * rstd * gamma, rstd = 1 / sqrt(mean(x^2) + epsilon); epsilon is usually 1e-05; more: rstd. */
  public static Value rmsNorm(Value x, Value gamma) {
    return Graph.of(Arrays.asList(x, gamma)).op("rms_norm", Arrays.asList(x, gamma), Map.of(), 2);
  }

  /** y = x * rstd * gamma, rstd = 1 / sqrt(mean(x^2) + epsilon); epsilon is usually 1e-05; more: rstd. */
  public static Value rmsNorm(Value x, Value gamma, double epsilon) {
    return Graph.of(Arrays.asList(x, gamma)).op("rms_norm", Arrays.asList(x, gamma), Map.ofEntries(Map.entry("epsilon", epsilon)), 2);
  }

  /** y = e^x / sum e^x along axis; axis is usually -1. */
  public static Value softmax(Value x) {
    return Graph.of(Arrays.asList(x)).op("softmax", Arrays.asList(x), Map.of(), 1);
  }

  /** y = e^x / sum e^x along axis; axis is usually -1. */
  public static Value softmax(Value x, long axis) {
    return Graph.of(Arrays.asList(x)).op("softmax", Arrays.asList(x), Map.ofEntries(Map.entry("axis", axis)), 1);
  }

  /** y = x - log sum e^x along axis; axis is usually -1. */
  public static Value logSoftmax(Value x) {
    return Graph.of(Arrays.asList(x)).op("log_softmax", Arrays.asList(x), Map.of(), 1);
  }

  /** y = x - log sum e^x along axis; axis is usually -1. */
  public static Value logSoftmax(Value x, long axis) {
    return Graph.of(Arrays.asList(x)).op("log_softmax", Arrays.asList(x), Map.ofEntries(Map.entry("axis", axis)), 1);
  }

  /** o = softmax(scale q k^T) v. q [B, T, H, D], k and v [B, S, G, D], G divides H (grouped-query), scale 0: 1/sqrt(D); causal: query t sees keys 0..t+S-T; lse [B, H, T], f32 (f64 for f64), is log sum exp of each row's scores; a row that sees nothing gives 0 and -inf; causal is usually true; scale is usually 0; more: lse. */
  public static Value attention(Value q, Value k, Value v) {
    return Graph.of(Arrays.asList(q, k, v)).op("attention", Arrays.asList(q, k, v), Map.of(), 2);
  }

  /** o = softmax(scale q k^T) v. q [B, T, H, D], k and v [B, S, G, D], G divides H (grouped-query), scale 0: 1/sqrt(D); causal: query t sees keys 0..t+S-T; lse [B, H, T], f32 (f64 for f64), is log sum exp of each row's scores; a row that sees nothing gives 0 and -inf; causal is usually true; scale is usually 0; more: lse. */
  public static Value attention(Value q, Value k, Value v, boolean causal, double scale) {
    return Graph.of(Arrays.asList(q, k, v)).op("attention", Arrays.asList(q, k, v), Map.ofEntries(Map.entry("causal", causal), Map.entry("scale", scale)), 2);
  }

  /** rotates pairs (d, d + D/2) of x [B, T, H, D] by (t + offset) * base^(-2d/D); inverse turns back; base is usually 10000; offset is usually 0; inverse is usually false. */
  public static Value rope(Value x) {
    return Graph.of(Arrays.asList(x)).op("rope", Arrays.asList(x), Map.of(), 1);
  }

  /** rotates pairs (d, d + D/2) of x [B, T, H, D] by (t + offset) * base^(-2d/D); inverse turns back; base is usually 10000; offset is usually 0; inverse is usually false. */
  public static Value rope(Value x, double base, long offset, boolean inverse) {
    return Graph.of(Arrays.asList(x)).op("rope", Arrays.asList(x), Map.ofEntries(Map.entry("base", base), Map.entry("offset", offset), Map.entry("inverse", inverse)), 1);
  }

  /** y[..., :] = weight[tokens[...], :]; weight [V, C], tokens i32 or i64; a token outside 0..V-1 is an error naming its place. */
  public static Value embedding(Value weight, Value tokens) {
    return Graph.of(Arrays.asList(weight, tokens)).op("embedding", Arrays.asList(weight, tokens), Map.of(), 1);
  }

  /** y[i][j] = x[i][index[i][j]] along axis (torch.gather); axis is usually -1. */
  public static Value gather(Value x, Value index) {
    return Graph.of(Arrays.asList(x, index)).op("gather", Arrays.asList(x, index), Map.of(), 1);
  }

  /** y[i][j] = x[i][index[i][j]] along axis (torch.gather); axis is usually -1. */
  public static Value gather(Value x, Value index, long axis) {
    return Graph.of(Arrays.asList(x, index)).op("gather", Arrays.asList(x, index), Map.ofEntries(Map.entry("axis", axis)), 1);
  }

  /** index (i32) of the first largest element; NaN is largest; axis is usually -1; keepDims is usually false. */
  public static Value argmax(Value x) {
    return Graph.of(Arrays.asList(x)).op("argmax", Arrays.asList(x), Map.of(), 1);
  }

  /** index (i32) of the first largest element; NaN is largest; axis is usually -1; keepDims is usually false. */
  public static Value argmax(Value x, long axis, boolean keepDims) {
    return Graph.of(Arrays.asList(x)).op("argmax", Arrays.asList(x), Map.ofEntries(Map.entry("axis", axis), Map.entry("keep_dims", keepDims)), 1);
  }

  /** sum = -sum_r w_r log softmax(logits)[r, target_r], count = sum_r w_r over rows whose target is not ignore_index; logits [..., V], targets [...] i32 or i64; sum, count and dsum are f64 scalars, lse f32 (f64 for f64) [...]; weights are of the rows. label_smoothing: the share of a row's weight that goes evenly to all V classes (torch's); z_loss: adds z_loss lse^2 to each row (PaLM, 2022); ignoreIndex is usually -100; labelSmoothing is usually 0; zLoss is usually 0; more: count, lse. */
  public static Value crossEntropy(Value logits, Value targets) {
    return Graph.of(Arrays.asList(logits, targets)).op("cross_entropy", Arrays.asList(logits, targets), Map.of(), 3);
  }

  /** sum = -sum_r w_r log softmax(logits)[r, target_r], count = sum_r w_r over rows whose target is not ignore_index; logits [..., V], targets [...] i32 or i64; sum, count and dsum are f64 scalars, lse f32 (f64 for f64) [...]; weights are of the rows. label_smoothing: the share of a row's weight that goes evenly to all V classes (torch's); z_loss: adds z_loss lse^2 to each row (PaLM, 2022); ignoreIndex is usually -100; labelSmoothing is usually 0; zLoss is usually 0; more: count, lse. */
  public static Value crossEntropy(Value logits, Value targets, Value weights) {
    return Graph.of(Arrays.asList(logits, targets, weights)).op("cross_entropy", Arrays.asList(logits, targets, weights), Map.of(), 3);
  }

  /** sum = -sum_r w_r log softmax(logits)[r, target_r], count = sum_r w_r over rows whose target is not ignore_index; logits [..., V], targets [...] i32 or i64; sum, count and dsum are f64 scalars, lse f32 (f64 for f64) [...]; weights are of the rows. label_smoothing: the share of a row's weight that goes evenly to all V classes (torch's); z_loss: adds z_loss lse^2 to each row (PaLM, 2022); ignoreIndex is usually -100; labelSmoothing is usually 0; zLoss is usually 0; more: count, lse. */
  public static Value crossEntropy(Value logits, Value targets, Value weights, long ignoreIndex, double labelSmoothing, double zLoss) {
    return Graph.of(Arrays.asList(logits, targets, weights)).op("cross_entropy", Arrays.asList(logits, targets, weights), Map.ofEntries(Map.entry("ignore_index", ignoreIndex), Map.entry("label_smoothing", labelSmoothing), Map.entry("z_loss", zLoss)), 3);
  }

  /** sum = sum w (max(x, 0) - x t + log(1 + e^-|x|)), count = sum w (without weights: elements); more: count. */
  public static Value bceWithLogits(Value x, Value target) {
    return Graph.of(Arrays.asList(x, target)).op("bce_with_logits", Arrays.asList(x, target), Map.of(), 2);
  }

  /** sum = sum w (max(x, 0) - x t + log(1 + e^-|x|)), count = sum w (without weights: elements); more: count. */
  public static Value bceWithLogits(Value x, Value target, Value weights) {
    return Graph.of(Arrays.asList(x, target, weights)).op("bce_with_logits", Arrays.asList(x, target, weights), Map.of(), 2);
  }

  /** sum = sum w (x - t)^2, count = sum w; more: count. */
  public static Value mse(Value x, Value target) {
    return Graph.of(Arrays.asList(x, target)).op("mse", Arrays.asList(x, target), Map.of(), 2);
  }

  /** sum = sum w (x - t)^2, count = sum w; more: count. */
  public static Value mse(Value x, Value target, Value weights) {
    return Graph.of(Arrays.asList(x, target, weights)).op("mse", Arrays.asList(x, target, weights), Map.of(), 2);
  }

  /** sum = sum w (|d| &lt;= delta ? d^2 / 2 : delta (|d| - delta / 2)), d = x - t; count = sum w; delta is usually 1; more: count. */
  public static Value huber(Value x, Value target) {
    return Graph.of(Arrays.asList(x, target)).op("huber", Arrays.asList(x, target), Map.of(), 2);
  }

  /** sum = sum w (|d| &lt;= delta ? d^2 / 2 : delta (|d| - delta / 2)), d = x - t; count = sum w; delta is usually 1; more: count. */
  public static Value huber(Value x, Value target, Value weights) {
    return Graph.of(Arrays.asList(x, target, weights)).op("huber", Arrays.asList(x, target, weights), Map.of(), 2);
  }

  /** sum = sum w (|d| &lt;= delta ? d^2 / 2 : delta (|d| - delta / 2)), d = x - t; count = sum w; delta is usually 1; more: count. */
  public static Value huber(Value x, Value target, Value weights, double delta) {
    return Graph.of(Arrays.asList(x, target, weights)).op("huber", Arrays.asList(x, target, weights), Map.ofEntries(Map.entry("delta", delta)), 2);
  }

  /** over axes; none given: over all; axes is usually none; keepDims is usually false. */
  public static Value sum(Value x) {
    return Graph.of(Arrays.asList(x)).op("sum", Arrays.asList(x), Map.of(), 1);
  }

  /** over axes; none given: over all; axes is usually none; keepDims is usually false. */
  public static Value sum(Value x, long[] axes, boolean keepDims) {
    return Graph.of(Arrays.asList(x)).op("sum", Arrays.asList(x), Map.ofEntries(Map.entry("axes", axes), Map.entry("keep_dims", keepDims)), 1);
  }

  /** over axes; none given: over all; of nothing: NaN; axes is usually none; keepDims is usually false. */
  public static Value mean(Value x) {
    return Graph.of(Arrays.asList(x)).op("mean", Arrays.asList(x), Map.of(), 1);
  }

  /** over axes; none given: over all; of nothing: NaN; axes is usually none; keepDims is usually false. */
  public static Value mean(Value x, long[] axes, boolean keepDims) {
    return Graph.of(Arrays.asList(x)).op("mean", Arrays.asList(x), Map.ofEntries(Map.entry("axes", axes), Map.entry("keep_dims", keepDims)), 1);
  }

  /** over axes; the gradient is shared evenly among ties (torch.amax); axes is usually none; keepDims is usually false. */
  public static Value max(Value x) {
    return Graph.of(Arrays.asList(x)).op("max", Arrays.asList(x), Map.of(), 1);
  }

  /** over axes; the gradient is shared evenly among ties (torch.amax); axes is usually none; keepDims is usually false. */
  public static Value max(Value x, long[] axes, boolean keepDims) {
    return Graph.of(Arrays.asList(x)).op("max", Arrays.asList(x), Map.ofEntries(Map.entry("axes", axes), Map.entry("keep_dims", keepDims)), 1);
  }

  /** the same elements in another shape; no copy. */
  public static Value reshape(Value x, long[] shape) {
    return Graph.of(Arrays.asList(x)).op("reshape", Arrays.asList(x), Map.ofEntries(Map.entry("shape", shape)), 1);
  }

  /** stretches dimensions of size 1. */
  public static Value broadcastTo(Value x, long[] shape) {
    return Graph.of(Arrays.asList(x)).op("broadcast_to", Arrays.asList(x), Map.ofEntries(Map.entry("shape", shape)), 1);
  }

  /** y dimension i is x dimension order[i]. */
  public static Value transpose(Value x, long[] order) {
    return Graph.of(Arrays.asList(x)).op("transpose", Arrays.asList(x), Map.ofEntries(Map.entry("order", order)), 1);
  }

  /** x[start:end] along axis; start is usually 0. */
  public static Value slice(Value x, long axis, long end) {
    return Graph.of(Arrays.asList(x)).op("slice", Arrays.asList(x), Map.ofEntries(Map.entry("axis", axis), Map.entry("end", end)), 1);
  }

  /** x[start:end] along axis; start is usually 0. */
  public static Value slice(Value x, long axis, long start, long end) {
    return Graph.of(Arrays.asList(x)).op("slice", Arrays.asList(x), Map.ofEntries(Map.entry("axis", axis), Map.entry("start", start), Map.entry("end", end)), 1);
  }

  /** zeros before and after along axis; before is usually 0; after is usually 0. */
  public static Value pad(Value x, long axis) {
    return Graph.of(Arrays.asList(x)).op("pad", Arrays.asList(x), Map.ofEntries(Map.entry("axis", axis)), 1);
  }

  /** zeros before and after along axis; before is usually 0; after is usually 0. */
  public static Value pad(Value x, long axis, long before, long after) {
    return Graph.of(Arrays.asList(x)).op("pad", Arrays.asList(x), Map.ofEntries(Map.entry("axis", axis), Map.entry("before", before), Map.entry("after", after)), 1);
  }

  /** pieces along axis whose sizes sum to the dimension; axis is usually -1. */
  public static List<Value> split(Value x, long[] sizes) {
    Value first = Graph.of(Arrays.asList(x)).op("split", Arrays.asList(x), Map.ofEntries(Map.entry("sizes", sizes)), sizes.length);
    List<Value> all = new ArrayList<>(List.of(first));
    all.addAll(first.more());
    return List.copyOf(all);
  }

  /** pieces along axis whose sizes sum to the dimension; axis is usually -1. */
  public static List<Value> split(Value x, long axis, long[] sizes) {
    Value first = Graph.of(Arrays.asList(x)).op("split", Arrays.asList(x), Map.ofEntries(Map.entry("axis", axis), Map.entry("sizes", sizes)), sizes.length);
    List<Value> all = new ArrayList<>(List.of(first));
    all.addAll(first.more());
    return List.copyOf(all);
  }

  /** joins along axis; axis is usually -1. */
  public static Value concat(List<Value> xs) {
    return Graph.of(xs).op("concat", xs, Map.of(), 1);
  }

  /** joins along axis; axis is usually -1. */
  public static Value concat(List<Value> xs, long axis) {
    return Graph.of(xs).op("concat", xs, Map.ofEntries(Map.entry("axis", axis)), 1);
  }
}
