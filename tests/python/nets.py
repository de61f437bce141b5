"""Small trainings that the tests share."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from typing import Any

import numpy

import scaletrain as st

ROWS = 64
SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "") or "tsan" in os.environ.get("LD_PRELOAD", "")


def sine() -> dict[str, numpy.ndarray]:
    x = numpy.linspace(-3, 3, ROWS, dtype=numpy.float32).reshape(ROWS, 1)
    return {"x": x, "y": numpy.sin(x)}


def mlp(context: st.Context, seed: int = 1, **options: Any) -> st.Model:
    return st.Model.builtin(context, "mlp", seed=seed, hidden=[8], **options)


def trainer(context: st.Context, data: st.Data | None = None, **keys: Any) -> st.Trainer:
    return st.Trainer(mlp(context), {"batch": ROWS, "lr": 0.01, "warmup": 0, **keys}, data)


class FreshDlpack:
    """Each DLPack capsule is over new memory, which the object itself does not keep."""

    def __init__(self, values: numpy.ndarray) -> None:
        self.values = values

    def __dlpack__(self, **_: Any) -> Any:
        return self.values.copy().__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def on_each(ranks: Iterable[Any], act: Callable[[Any], None]) -> None:
    """Runs act(rank) on a separate thread for each rank. Reraises an exception of a rank."""
    errors = []

    def run(rank: Any) -> None:
        try:
            act(rank)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in ranks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def together(*work: Callable[[], Any]) -> None:
    """Runs each on a separate thread."""
    on_each(work, lambda act: act())


def resident_kb() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * (os.sysconf("SC_PAGE_SIZE") // 1024)


def long_trials() -> bool:
    """Whether to run the full sizes."""
    return "ST_LONG_TRIALS" in os.environ
