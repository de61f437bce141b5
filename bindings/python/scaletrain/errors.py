"""What goes wrong, as exceptions: each status of the library is a class, and also the built-in class that means the same."""

from __future__ import annotations

import traceback


class ScaleTrainError(Exception):
    """A call that failed. Its text says what was asked, with which values, and the way out.

    What is known besides: op, tensor, file, host and collective ("" where unknown), and offset, step and rank (-1 where unknown).
    """

    status = "internal"

    def __init__(
        self,
        message: str = "",
        *,
        op: str = "",
        tensor: str = "",
        file: str = "",
        host: str = "",
        offset: int = -1,
        step: int = -1,
        rank: int = -1,
        collective: str = "",
    ) -> None:
        super().__init__(message)
        self.op = op
        self.tensor = tensor
        self.file = file
        self.host = host
        self.offset = offset
        self.step = step
        self.rank = rank
        self.collective = collective

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class InvalidArgument(ScaleTrainError, ValueError):
    """A value that the call cannot take."""

    status = "invalid_argument"


class InvalidHandle(ScaleTrainError, ValueError):
    """An object that is closed."""

    status = "invalid_handle"


class WrongState(ScaleTrainError, RuntimeError):
    """A call that comes out of turn."""

    status = "wrong_state"


class NotFound(ScaleTrainError, LookupError):
    """A name that is not there."""

    status = "not_found"


class FileNotFound(NotFound, FileNotFoundError):
    """A file or folder that is not there; its path is `file`."""


class OutOfMemory(ScaleTrainError, MemoryError):
    """More memory than there is, or than memory_limit allows."""

    status = "out_of_memory"


class Unavailable(ScaleTrainError, RuntimeError):
    """A device, plug-in or library that is not here."""

    status = "unavailable"


class Unsupported(ScaleTrainError, NotImplementedError):
    """Something that the library does not do."""

    status = "unsupported"


class Cancelled(ScaleTrainError):
    """A call that cancel() ended; Ctrl-C is a KeyboardInterrupt instead."""

    status = "cancelled"


class Busy(ScaleTrainError, RuntimeError):
    """An object that another thread, or the callback's own caller, is inside of."""

    status = "busy"


class Timeout(ScaleTrainError, TimeoutError):
    """Something that took longer than it was given."""

    status = "timeout"


class RankError(ScaleTrainError, RuntimeError):
    """A rank that failed, or that does something else than the others."""

    status = "rank_failed"


class CheckpointError(ScaleTrainError, OSError):
    """A file that cannot be read or written, or is damaged; its path is `file`."""

    status = "io"


class NotFinite(ScaleTrainError, ArithmeticError):
    """An infinity or NaN where there may be none."""

    status = "not_finite"


class CallbackError(ScaleTrainError, RuntimeError):
    """A callback that failed; one of Python's arrives as its own exception instead."""

    status = "callback"


class InternalError(ScaleTrainError, RuntimeError):
    """A defect of the library."""


# By the numbers of error.h.
_CLASSES: dict[int, tuple[type[ScaleTrainError], str]] = {
    1: (InvalidArgument, "invalid_argument"),
    2: (InvalidHandle, "invalid_handle"),
    3: (WrongState, "wrong_state"),
    4: (NotFound, "not_found"),
    5: (OutOfMemory, "out_of_memory"),
    6: (Unavailable, "unavailable"),
    7: (Unsupported, "unsupported"),
    8: (Cancelled, "cancelled"),
    9: (Busy, "busy"),
    10: (Timeout, "timeout"),
    11: (RankError, "rank_failed"),
    12: (RankError, "rank_mismatch"),
    13: (CheckpointError, "corrupt"),
    14: (CheckpointError, "io"),
    15: (NotFinite, "not_finite"),
    16: (CallbackError, "callback"),
    17: (InternalError, "internal"),
}


def error(
    status: int, message: str, op: str, tensor: str, file: str, host: str, offset: int, step: int, rank: int, collective: str
) -> ScaleTrainError:
    """The exception of the library's last error."""
    kind, name = _CLASSES.get(status, (InternalError, "internal"))
    if kind is NotFound and file and not tensor:
        kind = FileNotFound
    made = kind(message, op=op, tensor=tensor, file=file, host=host, offset=offset, step=step, rank=rank, collective=collective)
    made.status = name
    return made


def forget_frames(error: BaseException | None) -> None:
    """Empties the frames that an exception holds: arrays in them see memory that ends now."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            traceback.clear_frames(one.__traceback__)
            waiting += [one.__cause__, one.__context__]
