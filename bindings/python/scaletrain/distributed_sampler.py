"""Selects the rows that a rank reads next, for a program with its own training loop."""

from __future__ import annotations

from array import array
from typing import NamedTuple

from .arrays import choice
from .errors import InvalidArgument
from .handle import Handle, native, of_c

_LAST = ("share", "drop", "join")


class SampledRows(NamedTuple):
    """The rows of this rank, and the number of rows on all ranks together; `all` is 0 when the epoch has ended."""

    rows: "array[int]"
    all: int


class DistributedSampler(Handle):
    """Shares the rows of an epoch among ranks. All arguments except rank must be the same on all ranks.

    The order is that of a trainer: each epoch is a permutation that depends on (seed, epoch).
    last: how an epoch's last rows are treated when fewer remain than all ranks together would take. "share" shares them evenly, so that each
    row is read once; "drop" skips them on all ranks; "join" continues with the first rows of the next epoch.
    """

    __slots__ = ()

    @of_c("st_distributed_sampler_create")
    def __init__(self, rows: int, *, rank: int = 0, size: int = 1, seed: int = 0, shuffle: bool = True, last: str = "share") -> None:
        options = native.DistributedSamplerOptions()
        options.rank, options.size, options.seed, options.shuffle = rank, size, seed, shuffle
        options.last = 1 + choice("last", last, _LAST)
        self._native = native.DistributedSampler(rows, options)

    @of_c("st_distributed_sampler_next")
    def next(self, count: int) -> SampledRows:
        """The next `count` rows of this rank; fewer at the end of an epoch. If `all` is 0 the epoch has ended, and the next call begins the
        next one."""
        if count < 1:
            raise InvalidArgument(f"DistributedSampler.next: count must be at least 1, got {count}")
        room = array("q", bytes(8 * count))
        taken = native.NextRows(self._native, room)
        return SampledRows(room[: taken.own()], taken.all())

    @of_c("st_distributed_sampler_set_epoch")
    def set_epoch(self, epoch: int) -> None:
        """Moves to the first row of an epoch."""
        self._native.set_epoch(epoch)

    @property
    @of_c("st_distributed_sampler_cursor", "st_distributed_sampler_set_cursor")
    def cursor(self) -> int:
        """Items that all ranks have taken since epoch 0, to store in a checkpoint. It does not depend on the number of ranks."""
        return self._native.cursor()  # type: ignore[no-any-return]

    @cursor.setter
    def cursor(self, cursor: int) -> None:
        self._native.set_cursor(cursor)
