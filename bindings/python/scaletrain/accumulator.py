"""Gradient accumulation as a separate part, over the program's own gradients."""

from __future__ import annotations

from typing import Sequence

from .arrays import Array, held
from .context import Context
from .handle import Handle, native, of_c
from .seen_state import SeenState


class Accumulator(Handle):
    """Accumulates gradients over the micro-batches of a step.

    steps: number of micro-batches in a step. gradients: the arrays that each backward writes, kept until this is closed.
    In a step, call backward and then add() for each micro-batch until should_step() returns True.
    """

    __slots__ = ("_kept", "_state")

    @of_c("st_accumulator_create")
    def __init__(self, context: Context, steps: int, gradients: Sequence[Array]) -> None:
        self._kept = [held(array) for array in gradients]
        self._state = SeenState("Accumulator")
        self._native = native.Accumulator(Context._native_of(context), steps, self._kept)

    @of_c("st_accumulator_add")
    def add(self, weight: float) -> None:
        """Adds the gradient of a micro-batch's summed loss; weight is its token count. The last micro-batch of a step writes the gradient of
        the mean over all tokens into the arrays."""
        self._native.add(weight)

    @of_c("st_accumulator_should_step")
    def should_step(self) -> bool:
        """Whether the arrays now hold the gradient of the whole step. If so, the next add() begins a new step."""
        return self._native.should_step()  # type: ignore[no-any-return]

    @property
    @of_c("st_accumulator_weight")
    def weight(self) -> float:
        """Sum of the weights that the step has had so far."""
        return self._native.weight()  # type: ignore[no-any-return]

    @of_c("st_accumulator_reset")
    def reset(self) -> None:
        """Discards the micro-batches that this step has had so far."""
        self._native.reset()

    @of_c("st_accumulator_set_steps")
    def set_steps(self, steps: int) -> None:
        """Changes the number of micro-batches in a step. Allowed only between two steps."""
        self._native.set_steps(steps)

    @of_c("st_accumulator_state_views")
    def state(self) -> dict[str, memoryview]:
        """The accumulator's own memory, for a checkpoint in the middle of a step. To restore a checkpoint, write into it. The accumulator
        cannot be closed while these memoryviews are in use."""
        return self._state.arrays(self._native.state)

    def close(self) -> None:
        """Frees the accumulator and releases the gradients."""
        with self._state.ending():
            super().close()
            self._kept = []
