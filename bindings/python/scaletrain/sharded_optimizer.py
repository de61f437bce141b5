"""An optimizer in shards: each rank keeps the state of its pieces of the parameters, and updates these (ZeRO, stages 1 and 2)."""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Mapping, Sequence

from .arrays import Array, choice, held, held_by_name
from .communicator import Communicator
from .handle import Handle, native, of_c, one_at_a_time, plain_json
from .loss_scaler import LossScaler
from .reports import OptimizerReport

_OPS = ("sum", "mean")


def _copy(memory: Any) -> memoryview:
    seen = memoryview(memory)
    copied: Any = memoryview(bytearray(seen.tobytes()))
    shown: memoryview = copied.cast(seen.format, seen.shape) if seen.nbytes > 0 else copied.cast(seen.format)
    return shown


class ShardedOptimizer(Handle):
    """ShardedOptimizer(communicator, {"w": w}, optimizer="adamw", lr=1e-3, clip=1), made by all ranks at once; other settings are
    Optimizer's. Sums the ranks' gradients and updates the parameters where they lie; they are kept until it is closed. Its calls are made
    by all ranks, in one order.

    stage: 1, or 2, the sums of gradients are in pieces too; op: "mean" or "sum"; bucket_bytes: of gradients that are exchanged together,
    which changes speed, no bit; masters_in_pieces: a step gathers kept copies in place of their parameters, of which a rank then has what
    it updates, and all where gather_state() leaves the state.
    """

    __slots__ = ("_kept", "_copies", "_lock")

    @of_c("st_sharded_optimizer_create")
    def __init__(
        self,
        communicator: Communicator,
        parameters: Mapping[str, Array],
        *,
        stage: int = 1,
        op: str = "mean",
        bucket_bytes: int = 26214400,
        masters_in_pieces: bool = False,
        **settings: Any,
    ) -> None:
        options = native.ShardedOptimizerOptions()
        options.stage = stage
        options.op = 1 + choice("op", op, _OPS)
        options.bucket_bytes = bucket_bytes
        options.masters_in_pieces = masters_in_pieces
        self._kept = held_by_name(parameters)
        self._copies: list[Array | None] = []
        self._lock = threading.Lock()  # over the library's memory of a gathered state, until it is copied
        self._native = native.ShardedOptimizer(Communicator._native_of(communicator), plain_json(settings), self._kept, options)

    @of_c("st_sharded_optimizer_gradient_ready")
    def gradient_ready(self, i: int, gradient: Array) -> None:
        """Stage 2: backward has made gradient i, which is copied. Given again before the step, it is of another micro-batch."""
        self._native.gradient_ready(i, gradient)

    @of_c("st_sharded_optimizer_step", "st_sharded_optimizer_step_scaled")
    def step(self, gradients: Sequence[Array] = (), *, scaler: LossScaler | None = None) -> OptimizerReport:
        """This rank's gradients in the order of the parameters, of stage 1 written; none, of stage 2: those that were given before.
        scaler: they are scaled; its update() comes next."""
        if scaler is None:
            return self._native.step(gradients)  # type: ignore[no-any-return]
        return self._native.step_scaled(LossScaler._native_of(scaler), gradients)  # type: ignore[no-any-return]

    @of_c("st_sharded_optimizer_keep_copies")
    def keep_copies(self, copies: Sequence[Array | None]) -> None:
        """The weights in 16 bits, as Optimizer's; a step gathers them too."""
        kept = [None if copy is None else held(copy) for copy in copies]
        self._native.keep_copies(kept)
        self._copies = kept

    @of_c("st_sharded_optimizer_set")
    def set(self, key: str, value: Any) -> None:
        """Changes a setting, such as lr, from the next step on; alike on all ranks."""
        self._native.set(key, plain_json(value))

    @of_c("st_sharded_optimizer_gather_state")
    def gather_state(self, rank: int = -1) -> dict[str, memoryview]:
        """The state of all ranks, for a checkpoint: a copy, on that rank or on all (-1); elsewhere none."""
        with one_at_a_time(self._lock, "ShardedOptimizer.gather_state"):
            return {name: _copy(memory) for name, memory in self._native.gather_state(rank).items()}

    @of_c("st_sharded_optimizer_load_state")
    def load_state(self, state: Mapping[str, Array]) -> None:
        """Goes on from the state of any number of ranks, or of an Optimizer; called by all ranks."""
        with one_at_a_time(self._lock, "ShardedOptimizer.load_state"):
            self._native.load_state(dict(state))

    def close(self) -> None:
        """Waits for what is being exchanged, and gives it back, and the parameters with it."""
        with one_at_a_time(self._lock, "ShardedOptimizer.close"):
            super().close()
            self._kept, self._copies = {}, []

    def __del__(self) -> None:
        """Parameters go after the work on them: of slots Python would drop them first."""
        with contextlib.suppress(Exception):  # one that was not made has no slots
            if self._kept:
                self.close()
