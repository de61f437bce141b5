"""Data parallel by itself: gradients of the program's own backward, exchanged between ranks while it goes on."""

from __future__ import annotations

import contextlib
from typing import Mapping

from .arrays import Array, choice, held_by_name
from .communicator import Communicator
from .handle import Handle, native, of_c

_OPS = ("sum", "mean")


class DataParallel(Handle):
    """DataParallel(communicator, {"w": w_gradient}), made by all ranks at once; gradients in the order of the forward, kept until it is
    closed. A step is backward, with gradient_ready(i) for each as it is made, and synchronize().

    op: "mean" or "sum"; bucket_bytes: of gradients that are exchanged together, which changes speed, no bit.
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
        """Backward has made gradient i, from 0 on: its exchange may begin."""
        self._native.gradient_ready(i)

    @of_c("st_data_parallel_synchronize")
    def synchronize(self) -> None:
        """Returns when all gradients hold what all ranks have together."""
        self._native.synchronize()

    @of_c("st_data_parallel_no_sync")
    def no_sync(self, on: bool) -> None:
        """While on, nothing is exchanged."""
        self._native.no_sync(on)

    def close(self) -> None:
        """Waits for what is being exchanged, and gives it back, and the gradients with it."""
        super().close()
        self._kept = {}

    def __del__(self) -> None:
        """Gradients go after the work on them: of slots Python would drop them first."""
        with contextlib.suppress(Exception):  # one that was not made has no slots
            if self._kept:
                self.close()
