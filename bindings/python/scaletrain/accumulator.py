"""Gradient accumulation by itself, over the program's own gradients."""

from __future__ import annotations

from typing import Sequence

from .arrays import Array, held
from .context import Context
from .handle import Handle, native, of_c
from .seen_state import SeenState


class Accumulator(Handle):
    """steps: micro-batches of a step; gradients: the arrays that each backward writes, kept until it is closed.

    A step is backward and add(), again and again until should_step().
    """

    __slots__ = ("_kept", "_state")

    @of_c("st_accumulator_create")
    def __init__(self, context: Context, steps: int, gradients: Sequence[Array]) -> None:
        self._kept = [held(array) for array in gradients]
        self._state = SeenState("Accumulator")
        self._native = native.Accumulator(Context._native_of(context), steps, self._kept)

    @of_c("st_accumulator_add")
    def add(self, weight: float) -> None:
        """Adds the gradient of a micro-batch's summed loss; weight: its tokens. The last of a step leaves the gradient of the mean over all
        tokens in the arrays."""
        self._native.add(weight)

    @of_c("st_accumulator_should_step")
    def should_step(self) -> bool:
        """Whether the arrays hold the gradient of the step now; then the next add() begins a new one."""
        return self._native.should_step()  # type: ignore[no-any-return]

    @property
    @of_c("st_accumulator_weight")
    def weight(self) -> float:
        """Tokens of the step so far."""
        return self._native.weight()  # type: ignore[no-any-return]

    @of_c("st_accumulator_reset")
    def reset(self) -> None:
        """Forgets the micro-batches of this step."""
        self._native.reset()

    @of_c("st_accumulator_set_steps")
    def set_steps(self, steps: int) -> None:
        """Between two steps only."""
        self._native.set_steps(steps)

    @of_c("st_accumulator_state_views")
    def state(self) -> dict[str, memoryview]:
        """Its own memory, for a checkpoint in the middle of a step; written to, it goes on from there. It cannot be closed while this is
        seen."""
        return self._state.arrays(self._native.state)

    def close(self) -> None:
        """Gives it back now, and the gradients with it."""
        with self._state.ending():
            super().close()
            self._kept = []
