"""Small trainings that the tests share."""

from __future__ import annotations

import os
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


def resident_kb() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * (os.sysconf("SC_PAGE_SIZE") // 1024)


def long_trials() -> bool:
    """The sizes that are run once in full."""
    return "ST_LONG_TRIALS" in os.environ
