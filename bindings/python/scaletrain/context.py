"""A context: the device, threads and memory that computations use."""

from __future__ import annotations

import json
import logging
from typing import Any, Callable, Protocol, Sequence

from .arrays import name_of, number_of
from .handle import Handle, native, of_c
from .reports import MemoryStats

LogFunction = Callable[[str, str, str], None]
"""Receives level ("error", "warning", "info", "debug"), area and text; may be called from any thread."""

_LEVELS = ("error", "warning", "info", "debug")


class HostOp(Protocol):
    """A custom op: an object with these methods. Arrays are memoryviews, valid only during the call; numpy.asarray(x) takes one without a copy.

    An exception that a method raises is reraised by the call that ran it.
    """

    def shape(self, *inputs: tuple[str, tuple[int, ...]]) -> Sequence[tuple[str, Sequence[int]]]:
        """Dtype and shape of each output, computed from those of the inputs. Must be a pure function. A dimension -n means n times the batch
        size."""

    def forward(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Computes the outputs."""

    # def backward(self, inputs, outputs, d_outputs, d_inputs): computes the d_inputs that are not None. Without it the op has no gradient.


class _Op:
    """Adapts a HostOp to the calls of the extension."""

    def __init__(self, op: HostOp, outputs: int) -> None:
        self._op = op
        self.outputs = outputs
        self.forward = op.forward
        self.backward = getattr(op, "backward", None)

    def shape(self, types: tuple[tuple[int, tuple[int, ...]], ...]) -> list[tuple[int, tuple[int, ...]]]:
        made = self._op.shape(*((name_of(dtype), dims) for dtype, dims in types))
        return [(number_of(dtype), tuple(dims)) for dtype, dims in made]


class Context(Handle):
    """The device, threads and memory that computations use.

    threads: threads of each trainer; 0 means the number of cores of this process.
    device: "cpu"; "reference", which is slow and accumulates in double precision; NAME or NAME:INDEX of a plug-in's device.
    memory_limit: limit in bytes of all buffers together; 0 means the memory of the machine.
    log: a function of (level, area, text), or a logging.Logger.
    parallel: a function (n, task) that runs task(i) for 0 <= i < n and returns when all have returned; None for the library's own threads.
    tuning_cache: the file that caches measured tiles; "" for none; None for the one that the environment selects.
    late_parameters: models allocate their parameters on first use; a trainer in a group with zero 3, with zero 1 or 2 and 16-bit weights,
    or with stages, then allocates only its rank's part.
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
        """Cancels the calls that are running in it; they raise Cancelled. May be called from any thread."""
        self._native.cancel()

    @of_c("st_context_trim")
    def trim(self) -> None:
        """Frees memory that is only cached for speed."""
        self._native.trim()

    @of_c("st_context_use_stream")
    def use_stream(self, stream: Any) -> None:
        """Names the program's stream on the context's device: a torch.cuda.Stream or a CuPy stream, the number of a cudaStream_t, 1 for
        CUDA's default stream, -1 for none. Until then it is 1. CUDA's per-thread default streams are refused. Calls that take a Tensor of
        the device come after what it has been given."""
        handle = getattr(stream, "cuda_stream", getattr(stream, "ptr", stream))
        self._native.use_stream(1 if handle == 0 and handle is not stream else handle)

    @property
    @of_c("st_context_stream")
    def stream(self) -> int:
        """The stream of use_stream(), as DLPack has it."""
        return self._native.stream()  # type: ignore[no-any-return]

    @of_c("st_context_memory", "st_memory_role_name")
    def memory(self) -> MemoryStats:
        """Current and peak bytes of the context's buffers, by purpose."""
        return self._native.memory()  # type: ignore[no-any-return]

    @of_c("st_context_reset_peak")
    def reset_peak(self) -> None:
        """Resets every peak of memory() to the current value."""
        self._native.reset_peak()

    @of_c("st_machine_calibrate")
    def calibrate(self, *, seconds: float = 40, quick: bool = False) -> dict[str, Any]:
        """Measures how long the instructions of training steps take on this machine, by training small built-in models.

        seconds: time to measure; the call takes a few more. Other work on the machine makes the rates too low.
        quick: only the smallest models, on one rank, for which 5 seconds are enough; this predicts large models badly.
        """
        return json.loads(self._native.calibrate(json.dumps({"seconds": seconds, "quick": quick})))  # type: ignore[no-any-return]

    @of_c("st_op_register")
    def register_op(self, name: str, op: HostOp, *, outputs: int = 1) -> None:
        """Adds the op `name` to the graphs of this context: graph.op(name, x)."""
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
