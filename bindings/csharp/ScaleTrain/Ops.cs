using System.Collections.Generic;

namespace ScaleTrain {

/// <summary>Every op as a method. Parameters: inputs, then attributes. Returns the first result; further ones are its
/// <see cref="Value.More"/>. Throws the graph's error if the call is wrong. null omits an optional input.</summary>
/// <remarks>Generated from runtime/ir/ops.def by capi/generators/ops_header.cpp: change the row, not this file.</remarks>
public static class Ops {

  /// <summary>a constant in every element</summary>
  public static Value Fill(Graph graph, long[] shape, double value = 0, DType dtype = DType.F32) {
    return Graph.Made(graph, "fill", new Value[0], 1, "shape", shape ?? new long[0], "value", value, "dtype", dtype)[0];
  }

  /// <summary>c = op(a) op(b) over the last two dimensions; leading dimensions broadcast. [..., M, K] x [..., K, N] -&gt; [..., M, N]</summary>
  public static Value Matmul(Value a, Value b, bool transposeA = false, bool transposeB = false) {
    return Graph.Made(null, "matmul", new[] { a, b }, 1, "transpose_a", transposeA, "transpose_b", transposeB)[0];
  }

  /// <summary>y = x weight + bias: [..., K] x [K, N] (transpose_weight: [N, K]) + [N]; fuse makes it from matmul and add</summary>
  public static Value Linear(Value x, Value weight, Value bias, bool transposeWeight = false) {
    return Graph.Made(null, "linear", new[] { x, weight, bias }, 1, "transpose_weight", transposeWeight)[0];
  }

  /// <summary>c = a + b</summary>
  public static Value Add(Value a, Value b) {
    return Graph.Made(null, "add", new[] { a, b }, 1)[0];
  }

  /// <summary>c = a - b</summary>
  public static Value Sub(Value a, Value b) {
    return Graph.Made(null, "sub", new[] { a, b }, 1)[0];
  }

  /// <summary>c = a * b</summary>
  public static Value Mul(Value a, Value b) {
    return Graph.Made(null, "mul", new[] { a, b }, 1)[0];
  }

  /// <summary>c = a / b</summary>
  public static Value Div(Value a, Value b) {
    return Graph.Made(null, "div", new[] { a, b }, 1)[0];
  }

  /// <summary>c = min(a, b); NaN wins; the gradient is halved on ties</summary>
  public static Value Minimum(Value a, Value b) {
    return Graph.Made(null, "minimum", new[] { a, b }, 1)[0];
  }

  /// <summary>c = max(a, b); NaN wins; the gradient is halved on ties</summary>
  public static Value Maximum(Value a, Value b) {
    return Graph.Made(null, "maximum", new[] { a, b }, 1)[0];
  }

  /// <summary>c = a ^ b</summary>
  public static Value Pow(Value a, Value b) {
    return Graph.Made(null, "pow", new[] { a, b }, 1)[0];
  }

  /// <summary>c = a test b as bool; test: equal|not_equal|less|less_equal|greater|greater_equal</summary>
  public static Value Compare(Value a, Value b, string test = "equal") {
    return Graph.Made(null, "compare", new[] { a, b }, 1, "test", test)[0];
  }

  /// <summary>c = condition ? a : b; the three broadcast</summary>
  public static Value Where(Value condition, Value a, Value b) {
    return Graph.Made(null, "where", new[] { condition, a, b }, 1)[0];
  }

  /// <summary>y = scale * x + shift</summary>
  public static Value Affine(Value x, double scale = 1, double shift = 0) {
    return Graph.Made(null, "affine", new[] { x }, 1, "scale", scale, "shift", shift)[0];
  }

  /// <summary>y = e^x</summary>
  public static Value Exp(Value x) {
    return Graph.Made(null, "exp", new[] { x }, 1)[0];
  }

  /// <summary>y = ln x</summary>
  public static Value Log(Value x) {
    return Graph.Made(null, "log", new[] { x }, 1)[0];
  }

  /// <summary>y = sqrt x</summary>
  public static Value Sqrt(Value x) {
    return Graph.Made(null, "sqrt", new[] { x }, 1)[0];
  }

  /// <summary>y = |x|</summary>
  public static Value Abs(Value x) {
    return Graph.Made(null, "abs", new[] { x }, 1)[0];
  }

  /// <summary>y = -x</summary>
  public static Value Neg(Value x) {
    return Graph.Made(null, "neg", new[] { x }, 1)[0];
  }

  /// <summary>y = -1, 0 or 1; sign(NaN) is NaN</summary>
  public static Value Sign(Value x) {
    return Graph.Made(null, "sign", new[] { x }, 1)[0];
  }

  /// <summary>y = min(max(x, low), high); gradient 0 on the bounds</summary>
  public static Value Clamp(Value x, double low = double.NegativeInfinity, double high = double.PositiveInfinity) {
    return Graph.Made(null, "clamp", new[] { x }, 1, "low", low, "high", high)[0];
  }

  /// <summary>y = x Phi(x); approximate: tanh (GPT-2's) or erf (exact); approximate: tanh|erf</summary>
  public static Value Gelu(Value x, string approximate = "tanh") {
    return Graph.Made(null, "gelu", new[] { x }, 1, "approximate", approximate)[0];
  }

  /// <summary>y = max(x, 0)</summary>
  public static Value Relu(Value x) {
    return Graph.Made(null, "relu", new[] { x }, 1)[0];
  }

  /// <summary>y = x sigmoid(x)</summary>
  public static Value Silu(Value x) {
    return Graph.Made(null, "silu", new[] { x }, 1)[0];
  }

  /// <summary>y = tanh x</summary>
  public static Value Tanh(Value x) {
    return Graph.Made(null, "tanh", new[] { x }, 1)[0];
  }

  /// <summary>y = 1 / (1 + e^-x)</summary>
  public static Value Sigmoid(Value x) {
    return Graph.Made(null, "sigmoid", new[] { x }, 1)[0];
  }

  /// <summary>y = x in another dtype; rounds to nearest even; float to integer truncates</summary>
  public static Value Cast(Value x, DType dtype) {
    return Graph.Made(null, "cast", new[] { x }, 1, "dtype", dtype)[0];
  }

  /// <summary>y = x * keep / (1 - rate), keep drawn anew for each element and step; rate 0: the recipe's; y = x outside training</summary>
  public static Value Dropout(Value x, double rate = 0) {
    return Graph.Made(null, "dropout", new[] { x }, 1, "rate", rate)[0];
  }

  /// <summary>y = (x - mean) * rstd * gamma + beta over the last dimension; gamma and beta have the type of x, or f32 for a 16-bit x; mean and rstd are f32 (f64 for f64) of the leading dimensions; more: mean, rstd</summary>
  public static Value LayerNorm(Value x, Value gamma, Value beta, double epsilon = 1e-05) {
    return Graph.Made(null, "layer_norm", new[] { x, gamma, beta }, 3, "epsilon", epsilon)[0];
  }

  /// <summary>y = x * rstd * gamma, rstd = 1 / sqrt(mean(x^2) + epsilon); gamma has the type of x, or f32 for a 16-bit x; more: rstd</summary>
  public static Value RmsNorm(Value x, Value gamma, double epsilon = 1e-05) {
    return Graph.Made(null, "rms_norm", new[] { x, gamma }, 2, "epsilon", epsilon)[0];
  }

  /// <summary>y = e^x / sum e^x along axis</summary>
  public static Value Softmax(Value x, long axis = -1) {
    return Graph.Made(null, "softmax", new[] { x }, 1, "axis", axis)[0];
  }

  /// <summary>y = x - log sum e^x along axis</summary>
  public static Value LogSoftmax(Value x, long axis = -1) {
    return Graph.Made(null, "log_softmax", new[] { x }, 1, "axis", axis)[0];
  }

  /// <summary>o = softmax(scale q k^T) v. q [B, T, H, D], k and v [B, S, G, D], G divides H (grouped-query), scale 0: 1/sqrt(D); causal: query t sees keys 0..t+S-T; lse [B, H, T], f32 (f64 for f64), is log sum exp of each row's scores; a row that sees nothing gives 0 and -inf; more: lse</summary>
  public static Value Attention(Value q, Value k, Value v, bool causal = true, double scale = 0) {
    return Graph.Made(null, "attention", new[] { q, k, v }, 2, "causal", causal, "scale", scale)[0];
  }

  /// <summary>rotates pairs (d, d + D/2) of x [B, T, H, D] by (t + offset) * base^(-2d/D); inverse turns back</summary>
  public static Value Rope(Value x, double @base = 10000, long offset = 0, bool inverse = false) {
    return Graph.Made(null, "rope", new[] { x }, 1, "base", @base, "offset", offset, "inverse", inverse)[0];
  }

  /// <summary>y[..., :] = weight[tokens[...], :]; weight [V, C], tokens i32 or i64; a token outside 0..V-1 is an error naming its place</summary>
  public static Value Embedding(Value weight, Value tokens) {
    return Graph.Made(null, "embedding", new[] { weight, tokens }, 1)[0];
  }

  /// <summary>y[i][j] = x[i][index[i][j]] along axis (torch.gather)</summary>
  public static Value Gather(Value x, Value index, long axis = -1) {
    return Graph.Made(null, "gather", new[] { x, index }, 1, "axis", axis)[0];
  }

  /// <summary>index (i32) of the first largest element; NaN is largest</summary>
  public static Value Argmax(Value x, long axis = -1, bool keepDims = false) {
    return Graph.Made(null, "argmax", new[] { x }, 1, "axis", axis, "keep_dims", keepDims)[0];
  }

  /// <summary>sum = -sum_r w_r log softmax(logits)[r, target_r], count = sum_r w_r over rows whose target is not ignore_index; logits [..., V], targets [...] i32 or i64; sum, count and dsum are f64 scalars, lse f32 (f64 for f64) [...]; weights: one per row. label_smoothing: the share of a row's weight spread evenly over all V classes (as in torch); z_loss: adds z_loss lse^2 to each row (PaLM, 2022); more: count, lse</summary>
  public static Value CrossEntropy(Value logits, Value targets, Value weights = null, long ignoreIndex = -100, double labelSmoothing = 0, double zLoss = 0) {
    return Graph.Made(null, "cross_entropy", new[] { logits, targets, weights }, 3, "ignore_index", ignoreIndex, "label_smoothing", labelSmoothing, "z_loss", zLoss)[0];
  }

  /// <summary>sum = sum w (max(x, 0) - x t + log(1 + e^-|x|)), count = sum w (without weights: elements); more: count</summary>
  public static Value BceWithLogits(Value x, Value target, Value weights = null) {
    return Graph.Made(null, "bce_with_logits", new[] { x, target, weights }, 2)[0];
  }

  /// <summary>sum = sum w (x - t)^2, count = sum w; more: count</summary>
  public static Value Mse(Value x, Value target, Value weights = null) {
    return Graph.Made(null, "mse", new[] { x, target, weights }, 2)[0];
  }

  /// <summary>sum = sum w (|d| &lt;= delta ? d^2 / 2 : delta (|d| - delta / 2)), d = x - t; count = sum w; more: count</summary>
  public static Value Huber(Value x, Value target, Value weights = null, double delta = 1) {
    return Graph.Made(null, "huber", new[] { x, target, weights }, 2, "delta", delta)[0];
  }

  /// <summary>sum over axes; no axes: over all dimensions</summary>
  public static Value Sum(Value x, long[] axes = null, bool keepDims = false) {
    return Graph.Made(null, "sum", new[] { x }, 1, "axes", axes ?? new long[0], "keep_dims", keepDims)[0];
  }

  /// <summary>mean over axes; no axes: over all dimensions; over no elements: NaN</summary>
  public static Value Mean(Value x, long[] axes = null, bool keepDims = false) {
    return Graph.Made(null, "mean", new[] { x }, 1, "axes", axes ?? new long[0], "keep_dims", keepDims)[0];
  }

  /// <summary>maximum over axes; ties share the gradient evenly (torch.amax)</summary>
  public static Value Max(Value x, long[] axes = null, bool keepDims = false) {
    return Graph.Made(null, "max", new[] { x }, 1, "axes", axes ?? new long[0], "keep_dims", keepDims)[0];
  }

  /// <summary>the same elements in another shape; no copy</summary>
  public static Value Reshape(Value x, long[] shape) {
    return Graph.Made(null, "reshape", new[] { x }, 1, "shape", shape ?? new long[0])[0];
  }

  /// <summary>repeats dimensions of size 1</summary>
  public static Value BroadcastTo(Value x, long[] shape) {
    return Graph.Made(null, "broadcast_to", new[] { x }, 1, "shape", shape ?? new long[0])[0];
  }

  /// <summary>y dimension i is x dimension order[i]</summary>
  public static Value Transpose(Value x, long[] order) {
    return Graph.Made(null, "transpose", new[] { x }, 1, "order", order ?? new long[0])[0];
  }

  /// <summary>x[start:end] along axis</summary>
  public static Value Slice(Value x, long axis, long start, long end) {
    return Graph.Made(null, "slice", new[] { x }, 1, "axis", axis, "start", start, "end", end)[0];
  }

  /// <summary>zeros before and after along axis</summary>
  public static Value Pad(Value x, long axis, long before = 0, long after = 0) {
    return Graph.Made(null, "pad", new[] { x }, 1, "axis", axis, "before", before, "after", after)[0];
  }

  /// <summary>one output for each of sizes along axis; the sizes sum to the dimension</summary>
  public static Value[] Split(Value x, long axis, long[] sizes) {
    return Graph.Made(null, "split", new[] { x }, Handle.Given(sizes, "sizes").Length, "axis", axis, "sizes", sizes ?? new long[0]);
  }

  /// <summary>joins along axis</summary>
  public static Value Concat(IReadOnlyList<Value> xs, long axis = -1) {
    return Graph.Made(null, "concat", xs, 1, "axis", axis)[0];
  }
}

}
