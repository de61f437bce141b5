"""Which rows a rank reads next, for training loops of the program's own."""

from __future__ import annotations

from array import array
from typing import NamedTuple

from .arrays import choice
from .errors import InvalidArgument
from .handle import Handle, native, of_c

_LAST = ("share", "drop", "join")


class SampledRows(NamedTuple):
    """Rows of this rank, and how many there are on all ranks together; 0: the epoch has ended."""

    rows: "array[int]"
    all: int


class DistributedSampler(Handle):
    """The order is a trainer's: each epoch is a permutation of (seed, epoch). Alike on all ranks, but for rank.

    last: what becomes of an epoch's last rows, where all ranks together would take more. "share": each row once, dealt out evenly; "drop": no
    rank gets them; "join": epochs have no end, the next one's first rows follow.
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
        """The next `count` rows of each rank; fewer at an epoch's end. Where `all` is 0 it is over, and the next call begins the next one."""
        if count < 1:
            raise InvalidArgument(f"DistributedSampler.next: count must be at least 1, got {count}")
        room = array("q", bytes(8 * count))
        taken = native.NextRows(self._native, room)
        return SampledRows(room[: taken.own()], taken.all())

    @of_c("st_distributed_sampler_set_epoch")
    def set_epoch(self, epoch: int) -> None:
        """To its first row."""
        self._native.set_epoch(epoch)

    @property
    @of_c("st_distributed_sampler_cursor", "st_distributed_sampler_set_cursor")
    def cursor(self) -> int:
        """Items that all ranks have taken since epoch 0: what a checkpoint keeps. It says nothing of how many ranks there are."""
        return self._native.cursor()  # type: ignore[no-any-return]

    @cursor.setter
    def cursor(self, cursor: int) -> None:
        self._native.set_cursor(cursor)
