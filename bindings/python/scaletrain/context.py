"""A context: where computing happens."""

from __future__ import annotations

import logging
from typing import Any, Callable, Protocol, Sequence

from .arrays import name_of, number_of
from .handle import Handle, native, of_c
from .reports import MemoryStats

LogFunction = Callable[[str, str, str], None]
"""Gets level ("error", "warning", "info", "debug"), area and text; from any thread."""

_LEVELS = ("error", "warning", "info", "debug")


class HostOp(Protocol):
    """An op of the program's own, as an object with these. Arrays are memoryviews that end with the call: numpy.asarray(x) sees one.

    What they raise arrives at the call that ran them.
    """

    def shape(self, *inputs: tuple[str, tuple[int, ...]]) -> Sequence[tuple[str, Sequence[int]]]:
        """Dtype and shape of each output from those of the inputs: a pure function. A dimension below 0 is that many times the batch."""

    def forward(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Fills the outputs."""

    # def backward(self, inputs, outputs, d_outputs, d_inputs): fills the d_inputs that are not None. Without it the op has no gradient.


class _Op:
    """A HostOp as the extension calls it."""

    def __init__(self, op: HostOp, outputs: int) -> None:
        self._op = op
        self.outputs = outputs
        self.forward = op.forward
        self.backward = getattr(op, "backward", None)

    def shape(self, types: tuple[tuple[int, tuple[int, ...]], ...]) -> list[tuple[int, tuple[int, ...]]]:
        made = self._op.shape(*((name_of(dtype), dims) for dtype, dims in types))
        return [(number_of(dtype), tuple(dims)) for dtype, dims in made]


class Context(Handle):
    """Where computing happens.

    threads: of each trainer; 0: this process's cores. device: "cpu", or "reference", which is slow and sums in double precision.
    memory_limit: bytes of all buffers together; 0: what the machine has. log: a function of (level, area, text), or a logging.Logger.
    parallel: runs task(i) for 0 <= i < n and returns when all have; None: the library's own threads. tuning_cache: the file of measured
    tiles; "": none; None: the environment's. late_parameters: models get theirs when something asks for them; a trainer of zero 3 in a group,
    or of zero 1 and 2 with 16 bits, makes its rank's pieces alone.
    """

    __slots__ = ()

    @of_c("st_context_create")
    def __init__(
        self,
        *,
        threads: int = 0,
        device: str = "cpu",
        memory_limit: int = 0,
        log: LogFunction | logging.Logger | None = None,
        parallel: Callable[[int, Callable[[int], None]], None] | None = None,
        tuning_cache: str | None = None,
        late_parameters: bool = False,
    ) -> None:
        options = native.ContextOptions()
        options.threads = threads
        options.device = device
        options.memory_limit = memory_limit
        if log is not None:
            options.set_log(_by_name(log))
        if parallel is not None:
            options.set_parallel(parallel)
        if tuning_cache is not None:
            options.set_tuning_cache(tuning_cache)
        options.late_parameters = late_parameters
        self._native = native.Context(options)

    @of_c("st_context_cancel")
    def cancel(self) -> None:
        """Ends what is running in it, from any thread: those calls raise Cancelled."""
        self._native.cancel()

    @of_c("st_context_trim")
    def trim(self) -> None:
        """Gives back what is only kept for speed."""
        self._native.trim()

    @of_c("st_context_memory", "st_memory_role_name")
    def memory(self) -> MemoryStats:
        """Bytes of its buffers now and at their peak, by what they are for."""
        return self._native.memory()  # type: ignore[no-any-return]

    @of_c("st_context_reset_peak")
    def reset_peak(self) -> None:
        """Every peak of memory() is what is there now, and grows from here."""
        self._native.reset_peak()

    @of_c("st_op_register")
    def register_op(self, name: str, op: HostOp, *, outputs: int = 1) -> None:
        """From now on graphs of this context have the op `name`: graph.op(name, x)."""
        self._native.register_op(name, _Op(op, outputs))


def _by_name(log: LogFunction | logging.Logger) -> Callable[[int, str, str], None]:
    if isinstance(log, logging.Logger):
        logger = log
        levels = (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)
        return lambda level, area, text: logger.log(levels[level], "%s: %s", area, text)
    if not callable(log):
        return log
    function = log
    return lambda level, area, text: function(_LEVELS[level], area, text)


__all__ = ["Context", "HostOp", "LogFunction"]
