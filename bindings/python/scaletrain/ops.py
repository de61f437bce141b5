"""Every op as a function. Parameters: inputs, then attributes. Returns the first result; further ones are its `more`. Raises the
graph's error if the call is wrong.

Generated from runtime/ir/ops.def by capi/generators/ops_header.cpp: change the row, not this file.
"""

# ruff: noqa
from __future__ import annotations

import math
from typing import Sequence

from .arrays import number_of
from .graph import Graph, Value


def fill(graph: Graph, *, shape: Sequence[int], value: float = 0, dtype: object = "f32") -> Value:
    """a constant in every element"""
    return graph.op("fill", shape=list(shape), value=float(value), dtype=number_of(dtype))


def matmul(a: Value, b: Value, *, transpose_a: bool = False, transpose_b: bool = False) -> Value:
    """c = op(a) op(b) over the last two dimensions; leading dimensions broadcast. [..., M, K] x [..., K, N] -> [..., M, N]"""
    return a.graph.op("matmul", a, b, transpose_a=transpose_a, transpose_b=transpose_b)


def linear(x: Value, weight: Value, bias: Value, *, transpose_weight: bool = False) -> Value:
    """y = x weight + bias: [..., K] x [K, N] (transpose_weight: [N, K]) + [N]; fuse makes it from matmul and add"""
    return x.graph.op("linear", x, weight, bias, transpose_weight=transpose_weight)


def add(a: Value, b: Value) -> Value:
    """c = a + b"""
    return a.graph.op("add", a, b)


def sub(a: Value, b: Value) -> Value:
    """c = a - b"""
    return a.graph.op("sub", a, b)


def mul(a: Value, b: Value) -> Value:
    """c = a * b"""
    return a.graph.op("mul", a, b)


def div(a: Value, b: Value) -> Value:
    """c = a / b"""
    return a.graph.op("div", a, b)


def minimum(a: Value, b: Value) -> Value:
    """c = min(a, b); NaN wins; the gradient is halved on ties"""
    return a.graph.op("minimum", a, b)


def maximum(a: Value, b: Value) -> Value:
    """c = max(a, b); NaN wins; the gradient is halved on ties"""
    return a.graph.op("maximum", a, b)


def pow(a: Value, b: Value) -> Value:
    """c = a ^ b"""
    return a.graph.op("pow", a, b)


def compare(a: Value, b: Value, *, test: str = "equal") -> Value:
    """c = a test b as bool; test: equal|not_equal|less|less_equal|greater|greater_equal"""
    return a.graph.op("compare", a, b, test=test)


def where(condition: Value, a: Value, b: Value) -> Value:
    """c = condition ? a : b; the three broadcast"""
    return condition.graph.op("where", condition, a, b)


def affine(x: Value, *, scale: float = 1, shift: float = 0) -> Value:
    """y = scale * x + shift"""
    return x.graph.op("affine", x, scale=float(scale), shift=float(shift))


def exp(x: Value) -> Value:
    """y = e^x"""
    return x.graph.op("exp", x)


def log(x: Value) -> Value:
    """y = ln x"""
    return x.graph.op("log", x)


def sqrt(x: Value) -> Value:
    """y = sqrt x"""
    return x.graph.op("sqrt", x)


def abs(x: Value) -> Value:
    """y = |x|"""
    return x.graph.op("abs", x)


def neg(x: Value) -> Value:
    """y = -x"""
    return x.graph.op("neg", x)


def sign(x: Value) -> Value:
    """y = -1, 0 or 1; sign(NaN) is NaN"""
    return x.graph.op("sign", x)


def clamp(x: Value, *, low: float = -math.inf, high: float = math.inf) -> Value:
    """y = min(max(x, low), high); gradient 0 on the bounds"""
    return x.graph.op("clamp", x, low=float(low), high=float(high))


def gelu(x: Value, *, approximate: str = "tanh") -> Value:
    """y = x Phi(x); approximate: tanh (GPT-2's) or erf (exact); approximate: tanh|erf"""
    return x.graph.op("gelu", x, approximate=approximate)


def relu(x: Value) -> Value:
    """y = max(x, 0)"""
    return x.graph.op("relu", x)


def silu(x: Value) -> Value:
    """y = x sigmoid(x)"""
    return x.graph.op("silu", x)


def tanh(x: Value) -> Value:
    """y = tanh x"""
    return x.graph.op("tanh", x)


def sigmoid(x: Value) -> Value:
    """y = 1 / (1 + e^-x)"""
    return x.graph.op("sigmoid", x)


def cast(x: Value, *, dtype: object) -> Value:
    """y = x in another dtype; rounds to nearest even; float to integer truncates"""
    return x.graph.op("cast", x, dtype=number_of(dtype))


def dropout(x: Value, *, rate: float = 0) -> Value:
    """y = x * keep / (1 - rate), keep drawn anew for each element and step; rate 0: the recipe's; y = x outside training"""
    return x.graph.op("dropout", x, rate=float(rate))


def layer_norm(x: Value, gamma: Value, beta: Value, *, epsilon: float = 1e-05) -> Value:
    """y = (x - mean) * rstd * gamma + beta over the last dimension; gamma and beta have the type of x, or f32 for a 16-bit x; mean and rstd are f32 (f64 for f64) of the leading dimensions; more: mean, rstd"""
    return x.graph.op("layer_norm", x, gamma, beta, epsilon=float(epsilon), results=3)


def rms_norm(x: Value, gamma: Value, *, epsilon: float = 1e-05) -> Value:
    """y = x * rstd * gamma, rstd = 1 / sqrt(mean(x^2) + epsilon); gamma has the type of x, or f32 for a 16-bit x; more: rstd"""
    return x.graph.op("rms_norm", x, gamma, epsilon=float(epsilon), results=2)


def softmax(x: Value, *, axis: int = -1) -> Value:
    """y = e^x / sum e^x along axis"""
    return x.graph.op("softmax", x, axis=axis)


def log_softmax(x: Value, *, axis: int = -1) -> Value:
    """y = x - log sum e^x along axis"""
    return x.graph.op("log_softmax", x, axis=axis)


def attention(q: Value, k: Value, v: Value, *, causal: bool = True, scale: float = 0) -> Value:
    """o = softmax(scale q k^T) v. q [B, T, H, D], k and v [B, S, G, D], G divides H (grouped-query), scale 0: 1/sqrt(D); causal: query t sees keys 0..t+S-T; lse [B, H, T], f32 (f64 for f64), is log sum exp of each row's scores; a row that sees nothing gives 0 and -inf; more: lse"""
    return q.graph.op("attention", q, k, v, causal=causal, scale=float(scale), results=2)


def rope(x: Value, *, base: float = 10000, offset: int = 0, inverse: bool = False) -> Value:
    """rotates pairs (d, d + D/2) of x [B, T, H, D] by (t + offset) * base^(-2d/D); inverse turns back"""
    return x.graph.op("rope", x, base=float(base), offset=offset, inverse=inverse)


def embedding(weight: Value, tokens: Value) -> Value:
    """y[..., :] = weight[tokens[...], :]; weight [V, C], tokens i32 or i64; a token outside 0..V-1 is an error naming its place"""
    return weight.graph.op("embedding", weight, tokens)


def gather(x: Value, index: Value, *, axis: int = -1) -> Value:
    """y[i][j] = x[i][index[i][j]] along axis (torch.gather)"""
    return x.graph.op("gather", x, index, axis=axis)


def argmax(x: Value, *, axis: int = -1, keep_dims: bool = False) -> Value:
    """index (i32) of the first largest element; NaN is largest"""
    return x.graph.op("argmax", x, axis=axis, keep_dims=keep_dims)


def cross_entropy(logits: Value, targets: Value, weights: Value | None = None, *, ignore_index: int = -100, label_smoothing: float = 0, z_loss: float = 0) -> Value:
    """sum = -sum_r w_r log softmax(logits)[r, target_r], count = sum_r w_r over rows whose target is not ignore_index; logits [..., V], targets [...] i32 or i64; sum, count and dsum are f64 scalars, lse f32 (f64 for f64) [...]; weights: one per row. label_smoothing: the share of a row's weight spread evenly over all V classes (as in torch); z_loss: adds z_loss lse^2 to each row (PaLM, 2022); more: count, lse"""
    return logits.graph.op("cross_entropy", logits, targets, weights, ignore_index=ignore_index, label_smoothing=float(label_smoothing), z_loss=float(z_loss), results=3)


def bce_with_logits(x: Value, target: Value, weights: Value | None = None) -> Value:
    """sum = sum w (max(x, 0) - x t + log(1 + e^-|x|)), count = sum w (without weights: elements); more: count"""
    return x.graph.op("bce_with_logits", x, target, weights, results=2)


def mse(x: Value, target: Value, weights: Value | None = None) -> Value:
    """sum = sum w (x - t)^2, count = sum w; more: count"""
    return x.graph.op("mse", x, target, weights, results=2)


def huber(x: Value, target: Value, weights: Value | None = None, *, delta: float = 1) -> Value:
    """sum = sum w (|d| <= delta ? d^2 / 2 : delta (|d| - delta / 2)), d = x - t; count = sum w; more: count"""
    return x.graph.op("huber", x, target, weights, delta=float(delta), results=2)


def sum(x: Value, *, axes: Sequence[int] = (), keep_dims: bool = False) -> Value:
    """sum over axes; no axes: over all dimensions"""
    return x.graph.op("sum", x, axes=list(axes), keep_dims=keep_dims)


def mean(x: Value, *, axes: Sequence[int] = (), keep_dims: bool = False) -> Value:
    """mean over axes; no axes: over all dimensions; over no elements: NaN"""
    return x.graph.op("mean", x, axes=list(axes), keep_dims=keep_dims)


def max(x: Value, *, axes: Sequence[int] = (), keep_dims: bool = False) -> Value:
    """maximum over axes; ties share the gradient evenly (torch.amax)"""
    return x.graph.op("max", x, axes=list(axes), keep_dims=keep_dims)


def reshape(x: Value, *, shape: Sequence[int]) -> Value:
    """the same elements in another shape; no copy"""
    return x.graph.op("reshape", x, shape=list(shape))


def broadcast_to(x: Value, *, shape: Sequence[int]) -> Value:
    """repeats dimensions of size 1"""
    return x.graph.op("broadcast_to", x, shape=list(shape))


def transpose(x: Value, *, order: Sequence[int]) -> Value:
    """y dimension i is x dimension order[i]"""
    return x.graph.op("transpose", x, order=list(order))


def slice(x: Value, *, axis: int, start: int = 0, end: int) -> Value:
    """x[start:end] along axis"""
    return x.graph.op("slice", x, axis=axis, start=start, end=end)


def pad(x: Value, *, axis: int, before: int = 0, after: int = 0) -> Value:
    """zeros before and after along axis"""
    return x.graph.op("pad", x, axis=axis, before=before, after=after)


def split(x: Value, *, axis: int = -1, sizes: Sequence[int]) -> tuple[Value, ...]:
    """one output for each of sizes along axis; the sizes sum to the dimension"""
    first = x.graph.op("split", x, axis=axis, sizes=list(sizes), results=len(sizes))
    return (first, *first.more)


def concat(xs: Sequence[Value], *, axis: int = -1) -> Value:
    """joins along axis"""
    return xs[0].graph.op("concat", *xs, axis=axis)
