"""A graph: a model as ops over values."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator, Sequence

from .arrays import Array, choice, name_of, number_of
from .context import Context
from .handle import Handle, native, of_c, to_json
from .reports import ValueInfo

BATCH = -1
"""The first dimension of an input, set by the data of each call. n * BATCH means n times the batch size."""

_INITS = ("zeros", "ones", "normal", "uniform", "xavier", "kaiming")


class Value:
    """A value of a graph. +, -, *, / and @ are ops on two values, or (except @) a value and a number."""

    __slots__ = ("graph", "more", "_native")

    def __init__(self, graph: Graph, made: Any, more: tuple[Value, ...] = ()) -> None:
        self.graph = graph
        self.more = more
        """Further results of its op, for example the token count of a loss."""
        self._native = made

    @staticmethod
    def _native_of(given: object) -> Any:
        """The native object of an argument, which must be a Value."""
        if not isinstance(given, Value):
            raise TypeError(f"a Value of the graph is required, got {given!r:.60} ({type(given).__name__})")
        return given._native

    @property
    def dtype(self) -> str:
        return self.graph.info(self).dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape. A negative first dimension -n means n times the batch size."""
        return self.graph.info(self).shape

    def __add__(self, other: Value | float) -> Value:
        return self._with("add", other) if isinstance(other, Value) else self._affine(1, other)

    def __radd__(self, other: float) -> Value:
        return self._affine(1, other)

    def __sub__(self, other: Value | float) -> Value:
        return self._with("sub", other) if isinstance(other, Value) else self._affine(1, -other)

    def __rsub__(self, other: float) -> Value:
        return self._affine(-1, other)

    def __mul__(self, other: Value | float) -> Value:
        return self._with("mul", other) if isinstance(other, Value) else self._affine(other, 0)

    def __rmul__(self, other: float) -> Value:
        return self._affine(other, 0)

    def __truediv__(self, other: Value | float) -> Value:
        return self._with("div", other) if isinstance(other, Value) else self._affine(1 / other, 0)

    def __matmul__(self, other: Value) -> Value:
        return self._with("matmul", other)

    def __neg__(self) -> Value:
        return self.graph.op("neg", self)

    def _with(self, op: str, other: Value) -> Value:
        return self.graph.op(op, self, other)

    def _affine(self, scale: float, shift: float) -> Value:
        return self.graph.op("affine", self, scale=float(scale), shift=float(shift))

    def __repr__(self) -> str:
        return f"<scaletrain.Value {self._native.id()} {self.dtype}{list(self.shape)}>"


class Graph(Handle):
    """A model as ops over values. An invalid call raises at once."""

    __slots__ = ()

    @of_c("st_graph_create")
    def __init__(self, context: Context) -> None:
        self._native = native.Graph(Context._native_of(context))

    @of_c("st_graph_input")
    def input(self, name: str, dtype: object, shape: Sequence[int]) -> Value:
        """An input that each batch supplies by this name; shape (BATCH, ...)."""
        return Value(self, self._native.input(name, number_of(dtype), shape))

    @of_c("st_graph_parameter")
    def parameter(self, name: str, shape: Sequence[int], *, init: str = "xavier", scale: float = 1.0) -> Value:
        """A trainable parameter. init: zeros, ones, normal, uniform, xavier, kaiming; scale: standard deviation, half width or gain."""
        return Value(self, self._native.parameter(name, shape, choice("init", init, _INITS), scale))

    @of_c("st_graph_parameter_values")
    def parameter_values(self, name: str, values: Array, *, trainable: bool = True) -> Value:
        """A parameter that starts with a copy of these values. If it is not trainable, no step changes it."""
        return Value(self, self._native.parameter_values(name, values, trainable))

    @of_c("st_graph_op", "st_graph_apply")
    def op(self, name: str, *inputs: Value | None, results: int = 1, **attributes: Any) -> Value:
        """Any op, including those of register_op(). scaletrain.ops has a function for each op. None omits an optional input."""
        given = [None if value is None else Value._native_of(value) for value in inputs]
        while given and given[-1] is None:
            given.pop()
        made = self._native.apply(name, given, attributes, results)
        return Value(self, made[0], tuple(Value(self, further) for further in made[1:]))

    @of_c("st_layer_linear")
    def linear(self, name: str, x: Value, outputs: int, **options: Any) -> Value:
        """y = x weight + bias. Options: bias=True, init="xavier", scale=1."""
        return Value(self, self._native.linear(name, Value._native_of(x), to_json({"outputs": outputs, **options})))

    @of_c("st_layer_embedding")
    def embedding(self, name: str, tokens: Value, vocabulary: int, width: int, **options: Any) -> Value:
        """Looks up a table row for each token. Option: scale=0.02."""
        return Value(self, self._native.embedding(name, Value._native_of(tokens), to_json({"vocabulary": vocabulary, "width": width, **options})))

    @of_c("st_layer_norm")
    def norm(self, name: str, x: Value, **options: Any) -> Value:
        """Normalisation over the last dimension. Options: kind="layer" or "rms", epsilon=1e-5."""
        return Value(self, self._native.norm(name, Value._native_of(x), to_json(options)))

    @of_c("st_layer_attention")
    def attention(self, name: str, x: Value, heads: int, **options: Any) -> Value:
        """Self-attention. Options: groups=heads, causal=True, rope=False, bias=True."""
        return Value(self, self._native.attention(name, Value._native_of(x), to_json({"heads": heads, **options})))

    @of_c("st_layer_mlp")
    def mlp(self, name: str, x: Value, hidden: Sequence[int], outputs: int, **options: Any) -> Value:
        """Hidden layers and an output layer. Option: activation="gelu", "relu", "silu" or "tanh"."""
        return Value(self, self._native.mlp(name, Value._native_of(x), to_json({"hidden": list(hidden), "outputs": outputs, **options})))

    @of_c("st_layer_dropout")
    def dropout(self, name: str, x: Value, rate: float = 0.0) -> Value:
        """Dropout. Rate 0 means the recipe's rate."""
        return Value(self, self._native.dropout(name, Value._native_of(x), to_json({"rate": rate})))

    @of_c("st_graph_scope", "st_graph_scope_end")
    @contextlib.contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """with graph.scope("encoder"): prefixes names in the block with "encoder."."""
        self._native.begin_scope(name)
        try:
            yield
        finally:
            self._native.end_scope()

    @of_c("st_graph_output")
    def output(self, name: str, value: Value) -> None:
        """Declares an output, which predictors and forward() return by this name."""
        self._native.output(name, Value._native_of(value))

    @of_c("st_graph_loss")
    def loss(self, value: Value) -> None:
        """Sets the loss that training minimises. It may be a loss or a mean over the batch, or a sum, difference or multiple of these. A step
        uses the mean of this formula over its rows, whatever the micro-batch size. Any other function raises InvalidArgument."""
        self._native.loss(Value._native_of(value))

    @of_c("st_graph_value")
    def info(self, value: Value) -> ValueInfo:
        dtype, shape = self._native.info(Value._native_of(value))
        return ValueInfo(name_of(dtype), shape)

    @of_c("st_graph_text")
    def text(self) -> str:
        """The graph as text, one node per line."""
        return self._native.text()  # type: ignore[no-any-return]
