"""A sharded optimizer: each rank keeps the state of its shards of the parameters and updates these shards (ZeRO, stages 1 and 2)."""

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
    """ShardedOptimizer(communicator, {"w": w}, optimizer="adamw", lr=1e-3, clip=1): sums the ranks' gradients and updates the parameters in
    place.

    All ranks must create it together and make its calls in the same order. Other settings are those of Optimizer. The parameters are kept
    until it is closed.
    stage: 1, or 2 to shard the gradient sums too.
    op: "mean" or "sum".
    bucket_bytes: size of the gradients that are exchanged together; affects the speed, not the result.
    shard_masters: a step gathers only the 16-bit copies of keep_copies(). Of their parameters each rank then has only the shards that it
    updates; gather_state() makes them whole on the ranks that receive the state.
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
        shard_masters: bool = False,
        **settings: Any,
    ) -> None:
        options = native.ShardedOptimizerOptions()
        options.stage = stage
        options.op = 1 + choice("op", op, _OPS)
        options.bucket_bytes = bucket_bytes
        options.shard_masters = shard_masters
        self._kept = held_by_name(parameters)
        self._copies: list[Array | None] = []
        self._lock = threading.Lock()  # guards the library's memory of a gathered state until it is copied
        self._native = native.ShardedOptimizer(Communicator._native_of(communicator), plain_json(settings), self._kept, options)

    @of_c("st_sharded_optimizer_gradient_ready")
    def gradient_ready(self, i: int, gradient: Array) -> None:
        """Stage 2 only: passes gradient i when backward has finished it. The gradient is copied. Passing it again before the step adds that of
        another micro-batch."""
        self._native.gradient_ready(i, gradient)

    @of_c("st_sharded_optimizer_step", "st_sharded_optimizer_step_scaled")
    def step(self, gradients: Sequence[Array] = (), *, scaler: LossScaler | None = None) -> OptimizerReport:
        """Updates the parameters with this rank's gradients, in the order of the parameters. Stage 1 overwrites the gradients. With stage 2, no
        gradients mean those passed to gradient_ready(). With a scaler they are scaled gradients; the scaler's update() must follow."""
        if scaler is None:
            return self._native.step(gradients)  # type: ignore[no-any-return]
        return self._native.step_scaled(LossScaler._native_of(scaler), gradients)  # type: ignore[no-any-return]

    @of_c("st_sharded_optimizer_keep_copies")
    def keep_copies(self, copies: Sequence[Array | None]) -> None:
        """Sets 16-bit copies of the weights, as Optimizer.keep_copies(). Each step gathers them too."""
        kept = [None if copy is None else held(copy) for copy in copies]
        self._native.keep_copies(kept)
        self._copies = kept

    @of_c("st_sharded_optimizer_set")
    def set(self, key: str, value: Any) -> None:
        """Changes a setting, such as lr, from the next step on. All ranks must set the same value."""
        self._native.set(key, plain_json(value))

    @of_c("st_sharded_optimizer_gather_state")
    def gather_state(self, rank: int = -1) -> dict[str, memoryview]:
        """Gathers a copy of the state of all ranks, for a checkpoint, on `rank` or on all ranks (-1). Other ranks get an empty dict."""
        with one_at_a_time(self._lock, "ShardedOptimizer.gather_state"):
            return {name: _copy(memory) for name, memory in self._native.gather_state(rank).items()}

    @of_c("st_sharded_optimizer_load_state")
    def load_state(self, state: Mapping[str, Array]) -> None:
        """Continues from a state gathered on any number of ranks, or from that of an Optimizer. All ranks must call it."""
        with one_at_a_time(self._lock, "ShardedOptimizer.load_state"):
            self._native.load_state(dict(state))

    def close(self) -> None:
        """Waits for running exchanges, frees the optimizer and releases the parameters."""
        with one_at_a_time(self._lock, "ShardedOptimizer.close"):
            super().close()
            self._kept, self._copies = {}, []

    def __del__(self) -> None:
        """Closes first: Python would drop the parameters in the slots while exchanges are still running."""
        with contextlib.suppress(Exception):  # if __init__ failed, the slots are unset
            if self._kept:
                self.close()
