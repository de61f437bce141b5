"""Matrix products by themselves: C = alpha A B + beta C over the program's arrays, and what is fused behind it."""

from __future__ import annotations

from typing import Any, NamedTuple

from .arrays import Array, choice, number_of
from .context import Context
from .handle import Handle, native, of_c
from .reports import GemmInfo

_ACTIVATIONS = ("none", "relu", "gelu_tanh", "gelu_erf", "silu")
_ORDERS = ("choose", "n_k_m", "n_m_k")
_PACKINGS = ("choose", "packed", "in_place")
_LIBRARIES = ("own", "auto")
_SOURCES = ("table", "wish", "cache", "tuned")


class GemmLayout(NamedTuple):
    """Strides in elements; row and column 0: row-major without gaps. batch 0 behind them: one matrix behind the other."""

    dtype: str = "f32"
    row: int = 0
    column: int = 0
    batch: int = 0
    shared: bool = False  # one matrix for the whole batch; not for C


class PackedMatrix(Handle):
    """B, laid out for the plans that pack alike. Made by Gemm.pack()."""

    __slots__ = ()

    def __init__(self, made: Any) -> None:
        if not isinstance(made, native.PackedMatrix):
            raise TypeError("a PackedMatrix is made by Gemm.pack()")
        self._native = made

    @of_c("st_gemm_repack")
    def repack(self, b: Array) -> None:
        """Another B, in place."""
        self._native.repack(b)


class Gemm(Handle):
    """A plan of products [m, k] x [k, n]: made once, run often.

    a, b, c: layouts, or dtypes alone. tile (m, n, k), block (m, n), micro_m: a wish; 0: choose. tune_ms: measured for at most so long when
    the plan is made; library "auto": libraries of others are measured too.
    """

    __slots__ = ()

    @of_c("st_gemm_plan_create")
    def __init__(
        self,
        context: Context,
        m: int,
        n: int,
        k: int,
        *,
        batch: int = 1,
        a: GemmLayout | str = "f32",
        b: GemmLayout | str = "f32",
        c: GemmLayout | str = "f32",
        threads: int = 0,
        tile: tuple[int, int, int] = (0, 0, 0),
        block: tuple[int, int] = (0, 0),
        micro_m: int = 0,
        order: str = "choose",
        packing: str = "choose",
        max_scratch_bytes: int = 0,
        tune_ms: int = 0,
        library: str = "own",
    ) -> None:
        problem = native.GemmProblem()
        problem.m, problem.n, problem.k, problem.batch = m, n, k, batch
        problem.a, problem.b, problem.c = _layout(a), _layout(b), _layout(c)
        wish = native.GemmSchedule()
        wish.threads = threads
        wish.tile_m, wish.tile_n, wish.tile_k = tile
        wish.block_m, wish.block_n = block
        wish.micro_m = micro_m
        wish.order = choice("order", order, _ORDERS)
        wish.packing = choice("packing", packing, _PACKINGS)
        wish.max_scratch_bytes = max_scratch_bytes
        wish.tune_ms = tune_ms
        wish.library = choice("library", library, _LIBRARIES)
        self._native = native.Gemm(Context._native_of(context), problem, wish)

    @of_c("st_gemm_run", "st_gemm_run_packed")
    def run(
        self,
        a: Array,
        b: Array | PackedMatrix,
        c: Array,
        *,
        alpha: float = 1.0,
        beta: float = 0.0,
        bias: Array | None = None,
        pre_activation: Array | None = None,
        activation: str = "none",
        derivative_at: Array | None = None,
        residual: Array | None = None,
        column_sums: Array | None = None,
    ) -> None:
        """C = alpha A B + beta C, then, in this order: + bias [n]; pre_activation is filled; the activation, or times its derivative at
        derivative_at; + residual; column_sums [n] are filled. beta 0 does not read C."""
        behind = (choice("activation", activation, _ACTIVATIONS), bias, pre_activation, derivative_at, residual, column_sums)
        if isinstance(b, PackedMatrix):
            self._native.multiply_packed(alpha, a, b._native, beta, c, *behind)
        else:
            self._native.multiply(alpha, a, b, beta, c, *behind)

    @of_c("st_gemm_pack")
    def pack(self, b: Array) -> PackedMatrix:
        """B, laid out once for many runs."""
        return PackedMatrix(self._native.pack(b))

    @property
    @of_c("st_gemm_plan_info")
    def info(self) -> GemmInfo:
        """What was chosen, and how fast the last run was."""
        raw = self._native.info()
        return GemmInfo(
            raw.adjusted,
            (raw.tile_m, raw.tile_n, raw.tile_k),
            (raw.block_m, raw.block_n),
            (raw.micro_m, raw.micro_n),
            _ORDERS[raw.order],
            _PACKINGS[raw.packing],
            raw.threads,
            raw.instruction_set,
            raw.scratch_bytes,
            raw.packed_bytes,
            raw.flops_per_second,
            raw.predicted_flops_per_second,
            _SOURCES[raw.source],
            raw.library,
        )


def _layout(given: GemmLayout | str) -> Any:
    layout = given if isinstance(given, GemmLayout) else GemmLayout(given)
    raw = native.GemmLayout()
    raw.dtype = number_of(layout.dtype)
    raw.row, raw.column, raw.batch, raw.shared = layout.row, layout.column, layout.batch, layout.shared
    return raw
