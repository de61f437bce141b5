"""Optimizers and clipping as separate parts, over the program's own parameters and gradients."""

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
    """Returns the norm of all gradients together. If it is above `max`, the gradients are scaled down to that norm in place. If max is 0, they
    are only read."""
    return native.clip_norm(Context._native_of(context), gradients, max)  # type: ignore[no-any-return]


class Optimizer(Handle):
    """Optimizer(context, {"w": w}, optimizer="adamw", lr=1e-3, clip=1, groups=[...]): updates the parameters in place. The parameters are kept
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
        """Updates the parameters. Gradients are in the order of the parameters. With a scaler they are scaled gradients, which are not changed;
        the scaler's update() must follow."""
        if scaler is None:
            return self._native.step(gradients)  # type: ignore[no-any-return]
        return self._native.step_scaled(LossScaler._native_of(scaler), gradients)  # type: ignore[no-any-return]

    @of_c("st_optimizer_keep_copies")
    def keep_copies(self, copies: Sequence[Array | None]) -> None:
        """Sets 16-bit copies of f32 parameters, which are then the master weights. The copies are written now and by every step. They are in the
        order of the parameters, with None for a parameter without a copy; [] ends the copying."""
        kept = [None if copy is None else held(copy) for copy in copies]
        self._native.keep_copies(kept)
        self._copies = kept

    @of_c("st_optimizer_set")
    def set(self, key: str, value: Any) -> None:
        """Changes a setting, such as lr, from the next step on."""
        self._native.set(key, plain_json(value))

    @of_c("st_optimizer_state_views")
    def state(self) -> dict[str, memoryview]:
        """The optimizer's own memory, for a checkpoint. To restore a checkpoint, write into it. The optimizer cannot be closed while these
        memoryviews are in use."""
        return self._state.arrays(self._native.state)

    def close(self) -> None:
        """Frees the optimizer and releases the parameters."""
        with self._state.ending():
            super().close()
            self._kept, self._copies = {}, []
