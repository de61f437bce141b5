"""A schedule: the learning rate as a function of the number of successful steps, as a separate part."""

from __future__ import annotations

from typing import Any

from .handle import Handle, native, of_c, plain_json


class Schedule(Handle):
    """Schedule("cosine", lr=1e-3, warmup=20, lr_steps=1000)(k) is the rate of the step that follows k successful steps; k starts at 0."""

    __slots__ = ()

    @of_c("st_schedule_create")
    def __init__(self, schedule: str = "constant", **keys: Any) -> None:
        self._native = native.Schedule(plain_json({"schedule": schedule, **keys}))

    @of_c("st_schedule_at")
    def __call__(self, step: int) -> float:
        return self._native.at(step)  # type: ignore[no-any-return]
