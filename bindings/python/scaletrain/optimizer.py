"""Optimizers and clipping by themselves, over the program's own parameters and gradients."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from .arrays import Array, held, held_by_name
from .context import Context
from .handle import Handle, native, of_c, plain_json
from .loss_scaler import LossScaler
from .reports import OptimizerReport
from .seen_state import SeenState


@of_c("st_clip_norm")
def clip_norm(context: Context, gradients: Sequence[Array], max: float) -> float:
    """The norm of all gradients together; above `max` they are scaled down to it in place. max 0: they are only read."""
    return native.clip_norm(Context._native_of(context), gradients, max)  # type: ignore[no-any-return]


class Optimizer(Handle):
    """Optimizer(context, {"w": w}, optimizer="adamw", lr=1e-3, clip=1, groups=[...]). Updates the parameters where they lie; they are kept
    until it is closed."""

    __slots__ = ("_kept", "_copies", "_state")

    @of_c("st_optimizer_create")
    def __init__(self, context: Context, parameters: Mapping[str, Array], **settings: Any) -> None:
        self._kept = held_by_name(parameters)
        self._copies: list[Array | None] = []
        self._state = SeenState("Optimizer")
        self._native = native.Optimizer(Context._native_of(context), plain_json(settings), self._kept)

    @of_c("st_optimizer_step", "st_optimizer_step_scaled")
    def step(self, gradients: Sequence[Array], *, scaler: LossScaler | None = None) -> OptimizerReport:
        """Gradients in the order of the parameters. scaler: they are scaled, and stay so; its update() comes next."""
        if scaler is None:
            return self._native.step(gradients)  # type: ignore[no-any-return]
        return self._native.step_scaled(LossScaler._native_of(scaler), gradients)  # type: ignore[no-any-return]

    @of_c("st_optimizer_keep_copies")
    def keep_copies(self, copies: Sequence[Array | None]) -> None:
        """The weights in 16 bits, f32 parameters being their masters: written now and by every step. In the order of the parameters, None
        where there is none of one; []: no more copies."""
        kept = [None if copy is None else held(copy) for copy in copies]
        self._native.keep_copies(kept)
        self._copies = kept

    @of_c("st_optimizer_set")
    def set(self, key: str, value: Any) -> None:
        """Changes a setting, such as lr, from the next step on."""
        self._native.set(key, plain_json(value))

    @of_c("st_optimizer_state_views")
    def state(self) -> dict[str, memoryview]:
        """Its own memory, for a checkpoint; written to, it goes on from there. It cannot be closed while this is seen."""
        return self._state.arrays(self._native.state)

    def close(self) -> None:
        """Gives it back now, and the parameters with it."""
        with self._state.ending():
            super().close()
            self._kept, self._copies = {}, []
