"""Ranks that exchange arrays: threads of this process, or processes on one or several machines."""

from __future__ import annotations

import contextlib
import json
import traceback
from types import TracebackType
from typing import Any, Protocol

from .arrays import Array, choice, held
from .context import Context
from .errors import InvalidHandle
from .handle import Handle, native, of_c
from .pending import Pending

_OPS = ("sum", "mean", "max", "min")


def _options(deadline: float, start: float, allow_single: bool = False) -> Any:
    options = native.CommunicatorOptions()
    options.deadline_milliseconds = round(deadline * 1000)
    options.start_milliseconds = round(start * 1000)
    options.allow_single = allow_single
    return options


def _op(op: str) -> int:
    return 1 + choice("op", op, _OPS)


class Transport(Protocol):
    """A program's own transport between ranks. Both methods must return without waiting. They are called one at a time but from several
    threads. An exception means that the other rank can no longer be reached: the calls of the group then raise it as a RankError.
    """

    def write(self, to: int, data: bytes) -> int:
        """Sends as many of the bytes to rank `to` as fit, after those sent before. Returns how many."""

    def read(self, source: int, most: int) -> bytes:
        """Returns up to `most` bytes that have arrived from rank `source`; b"" if there are none."""


class Communicator(Handle):
    """One rank of a group. Each rank is a thread with its own Communicator, or a process. All ranks make the same calls in the same order.

    Arrays are exchanged in place. They must be row-major without gaps, of f32, f64, bf16, f16, i32, i64 or u8. `name` identifies an array
    in errors and in the flight record. Calls that end in _async return at once and keep their arrays until the Pending is done; closing or
    dropping the Pending waits for that.

    If a rank dies, leaves or aborts, the calls of the other ranks raise RankError with its rank, host and collective. If a rank does not
    arrive in time, they raise Timeout. After either, the group is over and each later call raises the same error. A with block that ends
    with an exception aborts the group, so that the other ranks do not wait for this one.

    deadline: maximum seconds of a wait without a byte from the awaited rank.
    start: maximum seconds that ranks wait for each other at the start.
    """

    __slots__ = ()

    def __init__(self, made: Any) -> None:
        if not isinstance(made, native.Communicator):
            raise TypeError("a Communicator is created by Communicator.local(), processes(), env(), host() or callbacks()")
        self._native = made

    def _about(self) -> str:
        return f"rank {self._native.rank()} of {self._native.size()}"

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if kind is not None:
            reason = traceback.format_exception_only(kind, value)[-1].strip()
            with contextlib.suppress(InvalidHandle):  # closed already
                self._native.abort(reason.encode("utf-8", "replace").decode().replace("\0", "?"))
        super().__exit__(kind, value, trace)

    @staticmethod
    @of_c("st_communicator_local")
    def local(context: Context, n: int, *, deadline: float = 60) -> list[Communicator]:
        """Creates the n ranks of a group of threads. Give each to its own thread."""
        ranks = native.LocalRanks(Context._native_of(context), n, _options(deadline, 60))
        return [Communicator(ranks.take(rank)) for rank in range(n)]

    @staticmethod
    @of_c("st_communicator_processes")
    def processes(context: Context, job: str, rank: int, size: int, *, deadline: float = 60, start: float = 60) -> Communicator:
        """Joins as rank `rank` a group of `size` processes on this machine that all pass the same `job`. Returns when all have joined."""
        return Communicator(native.Communicator.processes(Context._native_of(context), job, rank, size, _options(deadline, start)))

    @staticmethod
    @of_c("st_communicator_env")
    def env(context: Context, *, deadline: float = 60, start: float = 60, allow_single: bool = False) -> Communicator:
        """Joins as the rank that the launcher assigned to this process: scaletrain launch, torchrun, mpirun or srun.

        allow_single: a process that no launcher started becomes a single rank instead of an error.
        """
        return Communicator(native.Communicator.env(Context._native_of(context), _options(deadline, start, allow_single)))

    @staticmethod
    @of_c("st_communicator_host")
    def host(context: Context, transport: str, group: int, *, deadline: float = 60, start: float = 60) -> Communicator:
        """Joins as this process's rank in a group of another library: "mpi" and mpi4py's MPI._addressof(comm), or 0 for MPI_COMM_WORLD."""
        return Communicator(native.Communicator.host_at(Context._native_of(context), transport, group, _options(deadline, start)))

    @staticmethod
    @of_c("st_communicator_callbacks")
    def callbacks(
        context: Context, rank: int, size: int, transport: Transport, *, deadline: float = 60, start: float = 60
    ) -> Communicator:
        """Joins as rank `rank` of `size` over the program's own transport, which is kept until the group is over."""
        made = native.Communicator.callbacks(Context._native_of(context), rank, size, transport, _options(deadline, start))
        return Communicator(made)

    @of_c("st_communicator_split")
    def split(self, color: int, key: int = 0, *, deadline: float | None = None, allow_single: bool = False) -> Communicator:
        """Makes groups of the ranks that give the same color, ordered by key, then by rank. All ranks make this call.

        deadline: as in the constructors; None: this group's.
        allow_single: a color that only this rank gives makes a group of one rank instead of an error.
        """
        return Communicator(self._native.split(color, key, _options(deadline or 0, 60, allow_single)))

    @of_c("st_communicator_duplicate")
    def duplicate(self, *, deadline: float | None = None) -> Communicator:
        """Makes a group of the same ranks, for calls in an order of their own, as from another thread. All ranks make this call."""
        return Communicator(self._native.duplicate(_options(deadline or 0, 60)))

    @property
    @of_c("st_communicator_rank")
    def rank(self) -> int:
        """This rank's number, from 0."""
        return self._native.rank()  # type: ignore[no-any-return]

    @property
    @of_c("st_communicator_size")
    def size(self) -> int:
        """Number of ranks in the group."""
        return self._native.size()  # type: ignore[no-any-return]

    @of_c("st_communicator_share")
    def share(self, elements: int, rank: int | None = None) -> range:
        """The indices of the shard that a rank (None: this one) has in reduce_scatter and all_gather of an array of `elements`."""
        of = self.rank if rank is None else rank
        return range(self._native.share_begin(elements, of), self._native.share_end(elements, of))

    @of_c("st_communicator_all_reduce")
    def all_reduce(self, array: Array, op: str = "sum", *, name: str = "") -> None:
        """Reduces the array over all ranks, in place, by "sum", "mean", "max" or "min"."""
        self._native.all_reduce(array, _op(op), name)

    def all_reduce_async(self, array: Array, op: str = "sum", *, name: str = "") -> Pending:
        """Begins all_reduce() in the background."""
        kept = held(array)
        return Pending(self._native.all_reduce_async(kept, _op(op), name), kept)

    @of_c("st_communicator_reduce_scatter")
    def reduce_scatter(self, whole: Array, own: Array, op: str = "sum", *, name: str = "") -> None:
        """Reduces `whole` over all ranks and writes this rank's shard to `own`, which may be that shard of `whole`."""
        self._native.reduce_scatter(whole, own, _op(op), name)

    def reduce_scatter_async(self, whole: Array, own: Array, op: str = "sum", *, name: str = "") -> Pending:
        """Begins reduce_scatter() in the background."""
        kept = held(whole), held(own)
        return Pending(self._native.reduce_scatter_async(*kept, _op(op), name), kept)

    @of_c("st_communicator_all_gather")
    def all_gather(self, own: Array, whole: Array, *, name: str = "") -> None:
        """Collects every rank's shard `own` in `whole`. `own` may be that shard of `whole`."""
        self._native.all_gather(own, whole, name)

    def all_gather_async(self, own: Array, whole: Array, *, name: str = "") -> Pending:
        """Begins all_gather() in the background."""
        kept = held(own), held(whole)
        return Pending(self._native.all_gather_async(*kept, name), kept)

    @of_c("st_communicator_all_to_all")
    def all_to_all(self, source: Array, to: Array, *, name: str = "") -> None:
        """Both arrays consist of one equal block per rank. Block i of `source` goes to rank i, and the block from rank i arrives in block i of
        `to`."""
        self._native.all_to_all(source, to, name)

    def all_to_all_async(self, source: Array, to: Array, *, name: str = "") -> Pending:
        """Begins all_to_all() in the background."""
        kept = held(source), held(to)
        return Pending(self._native.all_to_all_async(*kept, name), kept)

    @of_c("st_communicator_broadcast")
    def broadcast(self, array: Array, root: int = 0, *, name: str = "") -> None:
        """Copies the array of rank `root` to all ranks."""
        self._native.broadcast(array, root, name)

    def broadcast_async(self, array: Array, root: int = 0, *, name: str = "") -> Pending:
        """Begins broadcast() in the background."""
        kept = held(array)
        return Pending(self._native.broadcast_async(kept, root, name), kept)

    @of_c("st_communicator_send")
    def send(self, array: Array, to: int, *, name: str = "") -> None:
        """Sends the array to one other rank, which must receive the same number of elements."""
        self._native.send(array, to, name)

    def send_async(self, array: Array, to: int, *, name: str = "") -> Pending:
        """Begins send() in the background."""
        kept = held(array)
        return Pending(self._native.send_async(kept, to, name), kept)

    @of_c("st_communicator_receive")
    def receive(self, array: Array, source: int, *, name: str = "") -> None:
        """Receives the array that rank `source` sends."""
        self._native.receive(array, source, name)

    def receive_async(self, array: Array, source: int, *, name: str = "") -> Pending:
        """Begins receive() in the background."""
        kept = held(array)
        return Pending(self._native.receive_async(kept, source, name), kept)

    @of_c("st_communicator_barrier")
    def barrier(self, *, name: str = "") -> None:
        """Returns when all ranks have called it."""
        self._native.barrier(name)

    def barrier_async(self, *, name: str = "") -> Pending:
        """Begins barrier() in the background."""
        return Pending(self._native.barrier_async(name))

    @of_c("st_communicator_abort")
    def abort(self, reason: str = "") -> None:
        """Ends the group on every rank with this reason. May be called from any thread at any time."""
        self._native.abort(reason)

    @property
    @of_c("st_communicator_sent_bytes")
    def sent_bytes(self) -> int:
        """Bytes of elements sent to other ranks so far."""
        return self._native.sent_bytes()  # type: ignore[no-any-return]

    @of_c("st_communicator_flight_record")
    def flight_record(self) -> list[dict[str, Any]]:
        """This rank's last calls, oldest first."""
        return json.loads(self._native.flight_record())  # type: ignore[no-any-return]
