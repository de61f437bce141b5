"""Data parallelism as a separate part: exchanges the gradients of the program's own backward between ranks while backward is running."""

from __future__ import annotations

import contextlib
from typing import Mapping

from .arrays import Array, choice, held_by_name
from .communicator import Communicator
from .handle import Handle, native, of_c

_OPS = ("sum", "mean")


class DataParallel(Handle):
    """DataParallel(communicator, {"w": w_gradient}): replaces gradients in place by their mean or sum over all ranks.

    All ranks must create it together. In a step, call gradient_ready(i) for each gradient as backward produces it, then synchronize().
    gradients: in forward order; kept until this is closed.
    op: "mean" or "sum".
    bucket_bytes: size of the gradients that are exchanged together; affects the speed, not the result.
    """

    __slots__ = ("_kept",)

    @of_c("st_data_parallel_create")
    def __init__(self, communicator: Communicator, gradients: Mapping[str, Array], *, op: str = "mean", bucket_bytes: int = 26214400) -> None:
        options = native.DataParallelOptions()
        options.op = 1 + choice("op", op, _OPS)
        options.bucket_bytes = bucket_bytes
        self._kept = held_by_name(gradients)
        self._native = native.DataParallel(Communicator._native_of(communicator), self._kept, options)

    @of_c("st_data_parallel_gradient_ready")
    def gradient_ready(self, i: int) -> None:
        """Reports that backward has finished gradient i, counted from 0, so that its exchange may begin."""
        self._native.gradient_ready(i)

    @of_c("st_data_parallel_synchronize")
    def synchronize(self) -> None:
        """Returns when all gradients hold the mean or sum over all ranks."""
        self._native.synchronize()

    @of_c("st_data_parallel_no_sync")
    def no_sync(self, on: bool) -> None:
        """While on, no gradients are exchanged."""
        self._native.no_sync(on)

    def close(self) -> None:
        """Waits for running exchanges, frees the object and releases the gradients."""
        super().close()
        self._kept = {}

    def __del__(self) -> None:
        """Closes first: Python would drop the gradients in the slots while exchanges are still running."""
        with contextlib.suppress(Exception):  # if __init__ failed, the slots are unset
            if self._kept:
                self.close()
