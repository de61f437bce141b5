"""Matrix products as a separate part: C = alpha A B + beta C over the program's arrays, with fused operations on the result."""

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
_SOURCES = ("table", "requested", "cache", "tuned")


class GemmLayout(NamedTuple):
    """The layout of a matrix. Strides are in elements. If row and column are 0 the matrix is row-major without gaps; if batch is 0 the matrices
    follow each other without gaps."""

    dtype: str = "f32"
    row: int = 0
    column: int = 0
    batch: int = 0
    shared: bool = False  # the whole batch uses one matrix; not allowed for C


class PackedMatrix(Handle):
    """A packed matrix B, for plans with the same packing. Created by Gemm.pack()."""

    __slots__ = ()

    def __init__(self, made: Any) -> None:
        if not isinstance(made, native.PackedMatrix):
            raise TypeError("a PackedMatrix is created by Gemm.pack()")
        self._native = made

    @of_c("st_gemm_repack")
    def repack(self, b: Array) -> None:
        """Packs another B into the same memory."""
        self._native.repack(b)


class Gemm(Handle):
    """A plan for the product [m, k] x [k, n]. Create it once and run it often.

    a, b, c: layouts, or only dtypes.
    tile (m, n, k), block (m, n), micro_m: a requested schedule; the library chooses whatever is 0.
    tune_ms: milliseconds that creating the plan may spend on measuring tiles; 0 for no measuring.
    library: "own", or "auto" to measure third-party libraries too.
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
        requested = native.GemmSchedule()
        requested.threads = threads
        requested.tile_m, requested.tile_n, requested.tile_k = tile
        requested.block_m, requested.block_n = block
        requested.micro_m = micro_m
        requested.order = choice("order", order, _ORDERS)
        requested.packing = choice("packing", packing, _PACKINGS)
        requested.max_scratch_bytes = max_scratch_bytes
        requested.tune_ms = tune_ms
        requested.library = choice("library", library, _LIBRARIES)
        self._native = native.Gemm(Context._native_of(context), problem, requested)

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
        """C = alpha A B + beta C, then in this order: add bias [n]; write pre_activation; apply the activation, or multiply by its derivative
        at derivative_at; add residual; write the column sums to column_sums [n]. With beta 0, C is not read."""
        epilogue = (choice("activation", activation, _ACTIVATIONS), bias, pre_activation, derivative_at, residual, column_sums)
        if isinstance(b, PackedMatrix):
            self._native.multiply_packed(alpha, a, b._native, beta, c, *epilogue)
        else:
            self._native.multiply(alpha, a, b, beta, c, *epilogue)

    @of_c("st_gemm_pack")
    def pack(self, b: Array) -> PackedMatrix:
        """Packs B once for many runs."""
        return PackedMatrix(self._native.pack(b))

    @property
    @of_c("st_gemm_plan_info")
    def info(self) -> GemmInfo:
        """The chosen schedule, and the speed of the last run."""
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
