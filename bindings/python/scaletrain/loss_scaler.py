"""Loss scaling as a separate part: chooses the factor for the loss and divides the gradients by it, in place."""

from __future__ import annotations

from typing import Any, Sequence

from .arrays import Array
from .context import Context
from .handle import Handle, native, of_c


class LossScaler(Handle):
    """A step is scale, backward, unscale, clip, step, update. Defaults are those of torch.amp.GradScaler, plus a minimum scale.

    Options: enabled=True, dynamic=True, threads=0, initial_scale=65536, growth_factor=2, backoff_factor=0.5, growth_interval=2000,
    minimum_scale=1, hysteresis=1, consecutive_hysteresis=False.
    """

    __slots__ = ()

    @of_c("st_loss_scaler_create")
    def __init__(self, context: Context, **options: Any) -> None:
        raw = native.LossScalerOptions()
        for name, value in options.items():
            if not isinstance(getattr(native.LossScalerOptions, name, None), property) or name == "thisown":
                raise TypeError(f"LossScaler has no option {name!r}; help(LossScaler) lists its options")
            setattr(raw, name, value)
        self._native = native.LossScaler(Context._native_of(context), raw)

    @property
    @of_c("st_loss_scaler_scale")
    def scale(self) -> float:
        """The factor to multiply the loss with. It does not change until update()."""
        return self._native.scale()  # type: ignore[no-any-return]

    @of_c("st_loss_scaler_unscale")
    def unscale(self, gradients: Sequence[Array]) -> bool:
        """Divides all gradients of the step by the scale, in place. Returns whether all are finite."""
        return self._native.unscale(gradients)  # type: ignore[no-any-return]

    @of_c("st_loss_scaler_step")
    def step(self) -> bool:
        """Whether the optimizer should run now."""
        return self._native.step()  # type: ignore[no-any-return]

    @of_c("st_loss_scaler_update")
    def update(self) -> bool:
        """Chooses the next scale. Returns whether this step was skipped."""
        return self._native.update()  # type: ignore[no-any-return]

    @of_c("st_loss_scaler_state")
    def state(self) -> str:
        """The state as JSON, for a checkpoint; restore() continues from it."""
        return self._native.state()  # type: ignore[no-any-return]

    @of_c("st_loss_scaler_restore")
    def restore(self, state: str) -> None:
        """Continues from a state()."""
        self._native.restore(state)
