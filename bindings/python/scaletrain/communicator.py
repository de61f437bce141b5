"""Ranks that exchange arrays: threads of this process, or processes of this machine or of several."""

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
    """How a rank reaches the others by a program's own means. Both return at once; they are called one at a time, but from several threads.

    What they raise says that the other rank can be reached no more: the calls of the group end with it as a RankError.
    """

    def write(self, to: int, data: bytes) -> int:
        """Takes what it can of the bytes for rank `to`, behind what it took before; how many."""

    def read(self, source: int, most: int) -> bytes:
        """What has come from rank `source`, at most so many bytes; b"" where there is nothing."""


class Communicator(Handle):
    """One rank of a group: each is given to a thread of its own, or is a process's. All ranks make the same calls in the same order.

    Arrays are exchanged where they lie: row-major without gaps, of f32, f64, bf16, f16, i32, i64 or u8. `name` is what errors and the flight
    record call an array. The calls that end in _async return at once; their arrays are kept until the Pending is done, and closing or
    dropping it waits for that. Where a rank dies, leaves or aborts the calls of the others are a RankError with its rank, host and
    collective, where one does not come a Timeout; then the group is over, and each later call says so again. A with block that ends by an
    exception aborts: the others are told, and do not wait for this rank.

    deadline: seconds that a wait may take without a byte from whom it waits for; start: that ranks wait for each other at the start.
    """

    __slots__ = ()

    def __init__(self, made: Any) -> None:
        if not isinstance(made, native.Communicator):
            raise TypeError("a Communicator is made by Communicator.local(), processes(), env(), host() or callbacks()")
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
        """The n ranks of a group of threads."""
        ranks = native.LocalRanks(Context._native_of(context), n, _options(deadline, 60))
        return [Communicator(ranks.take(rank)) for rank in range(n)]

    @staticmethod
    @of_c("st_communicator_processes")
    def processes(context: Context, job: str, rank: int, size: int, *, deadline: float = 60, start: float = 60) -> Communicator:
        """Rank `rank` of `size` processes of this machine, which have the text `job` in common; returns when all are there."""
        return Communicator(native.Communicator.processes(Context._native_of(context), job, rank, size, _options(deadline, start)))

    @staticmethod
    @of_c("st_communicator_env")
    def env(context: Context, *, deadline: float = 60, start: float = 60, allow_single: bool = False) -> Communicator:
        """The rank that scaletrain launch, torchrun, mpirun or srun made this process.

        allow_single: where none of them has started it, it is one rank alone, and not an error.
        """
        return Communicator(native.Communicator.env(Context._native_of(context), _options(deadline, start, allow_single)))

    @staticmethod
    @of_c("st_communicator_host")
    def host(context: Context, transport: str, group: int, *, deadline: float = 60, start: float = 60) -> Communicator:
        """The rank that this process is in a group of another library's: "mpi" and mpi4py's MPI._addressof(comm), or 0 for MPI_COMM_WORLD."""
        return Communicator(native.Communicator.host_at(Context._native_of(context), transport, group, _options(deadline, start)))

    @staticmethod
    @of_c("st_communicator_callbacks")
    def callbacks(
        context: Context, rank: int, size: int, transport: Transport, *, deadline: float = 60, start: float = 60
    ) -> Communicator:
        """Rank `rank` of `size` that reach each other by a transport of the program's own, which is kept until the group is over."""
        made = native.Communicator.callbacks(Context._native_of(context), rank, size, transport, _options(deadline, start))
        return Communicator(made)

    @property
    @of_c("st_communicator_rank")
    def rank(self) -> int:
        """This one's number, from 0."""
        return self._native.rank()  # type: ignore[no-any-return]

    @property
    @of_c("st_communicator_size")
    def size(self) -> int:
        """How many ranks the group has."""
        return self._native.size()  # type: ignore[no-any-return]

    @of_c("st_communicator_share")
    def share(self, elements: int, rank: int | None = None) -> range:
        """Which of so many elements are a rank's (None: this one's) in reduce_scatter and all_gather."""
        of = self.rank if rank is None else rank
        return range(self._native.share_begin(elements, of), self._native.share_end(elements, of))

    @of_c("st_communicator_all_reduce")
    def all_reduce(self, array: Array, op: str = "sum", *, name: str = "") -> None:
        """The array becomes that of all ranks reduced, by "sum", "mean", "max" or "min"."""
        self._native.all_reduce(array, _op(op), name)

    def all_reduce_async(self, array: Array, op: str = "sum", *, name: str = "") -> Pending:
        """all_reduce() behind the call."""
        kept = held(array)
        return Pending(self._native.all_reduce_async(kept, _op(op), name), kept)

    @of_c("st_communicator_reduce_scatter")
    def reduce_scatter(self, whole: Array, own: Array, op: str = "sum", *, name: str = "") -> None:
        """`own` gets this rank's share of all ranks' `whole` reduced; it may be that part of it."""
        self._native.reduce_scatter(whole, own, _op(op), name)

    def reduce_scatter_async(self, whole: Array, own: Array, op: str = "sum", *, name: str = "") -> Pending:
        """reduce_scatter() behind the call."""
        kept = held(whole), held(own)
        return Pending(self._native.reduce_scatter_async(*kept, _op(op), name), kept)

    @of_c("st_communicator_all_gather")
    def all_gather(self, own: Array, whole: Array, *, name: str = "") -> None:
        """`whole` gets every rank's share, `own`, which may be that part of it."""
        self._native.all_gather(own, whole, name)

    def all_gather_async(self, own: Array, whole: Array, *, name: str = "") -> Pending:
        """all_gather() behind the call."""
        kept = held(own), held(whole)
        return Pending(self._native.all_gather_async(*kept, name), kept)

    @of_c("st_communicator_all_to_all")
    def all_to_all(self, source: Array, to: Array, *, name: str = "") -> None:
        """Of as many equal parts as there are ranks, part i of `source` goes to rank i, and its part for us becomes part i of `to`."""
        self._native.all_to_all(source, to, name)

    def all_to_all_async(self, source: Array, to: Array, *, name: str = "") -> Pending:
        """all_to_all() behind the call."""
        kept = held(source), held(to)
        return Pending(self._native.all_to_all_async(*kept, name), kept)

    @of_c("st_communicator_broadcast")
    def broadcast(self, array: Array, root: int = 0, *, name: str = "") -> None:
        """All get the array that rank `root` has."""
        self._native.broadcast(array, root, name)

    def broadcast_async(self, array: Array, root: int = 0, *, name: str = "") -> Pending:
        """broadcast() behind the call."""
        kept = held(array)
        return Pending(self._native.broadcast_async(kept, root, name), kept)

    @of_c("st_communicator_send")
    def send(self, array: Array, to: int, *, name: str = "") -> None:
        """To one other rank, which receives as many elements."""
        self._native.send(array, to, name)

    def send_async(self, array: Array, to: int, *, name: str = "") -> Pending:
        """send() behind the call."""
        kept = held(array)
        return Pending(self._native.send_async(kept, to, name), kept)

    @of_c("st_communicator_receive")
    def receive(self, array: Array, source: int, *, name: str = "") -> None:
        """What rank `source` sends."""
        self._native.receive(array, source, name)

    def receive_async(self, array: Array, source: int, *, name: str = "") -> Pending:
        """receive() behind the call."""
        kept = held(array)
        return Pending(self._native.receive_async(kept, source, name), kept)

    @of_c("st_communicator_barrier")
    def barrier(self, *, name: str = "") -> None:
        """Returns when all ranks are here."""
        self._native.barrier(name)

    def barrier_async(self, *, name: str = "") -> Pending:
        """barrier() behind the call."""
        return Pending(self._native.barrier_async(name))

    @of_c("st_communicator_abort")
    def abort(self, reason: str = "") -> None:
        """Ends the group, on every rank, with this reason. From any thread at any time."""
        self._native.abort(reason)

    @property
    @of_c("st_communicator_sent_bytes")
    def sent_bytes(self) -> int:
        """Of elements, to other ranks, so far."""
        return self._native.sent_bytes()  # type: ignore[no-any-return]

    @of_c("st_communicator_flight_record")
    def flight_record(self) -> list[dict[str, Any]]:
        """This rank's last calls, oldest first."""
        return json.loads(self._native.flight_record())  # type: ignore[no-any-return]
