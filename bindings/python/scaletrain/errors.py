"""Exceptions. Each status of the library is a class, which also derives from the built-in exception with the same meaning."""

from __future__ import annotations

import re
import traceback


class ScaleTrainError(Exception):
    """A failed call. The text names the operation, its values and the way out.

    Further details: op, tensor, file, host and collective ("" if unknown), and offset, step and rank (-1 if unknown).
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
    """An argument has a value that the call does not accept."""

    status = "invalid_argument"


class InvalidHandle(ScaleTrainError, ValueError):
    """The object is closed."""

    status = "invalid_handle"


class WrongState(ScaleTrainError, RuntimeError):
    """The call is not allowed in the current state of the object."""

    status = "wrong_state"


class NotFound(ScaleTrainError, LookupError):
    """A name does not exist."""

    status = "not_found"


class FileNotFound(NotFound, FileNotFoundError):
    """A file or folder does not exist; its path is `file`."""


class OutOfMemory(ScaleTrainError, MemoryError):
    """The call needs more memory than is available or than memory_limit allows."""

    status = "out_of_memory"


class Unavailable(ScaleTrainError, RuntimeError):
    """A device, plug-in or library is not available."""

    status = "unavailable"


class Unsupported(ScaleTrainError, NotImplementedError):
    """The library does not support this."""

    status = "unsupported"


class Cancelled(ScaleTrainError):
    """The call was ended by cancel(). Ctrl-C raises KeyboardInterrupt instead."""

    status = "cancelled"


class Busy(ScaleTrainError, RuntimeError):
    """The object is in use: another thread, or the call that invoked this callback, is inside one of its methods."""

    status = "busy"


class Timeout(ScaleTrainError, TimeoutError):
    """A deadline has passed."""

    status = "timeout"


class RankError(ScaleTrainError, RuntimeError):
    """A rank failed, or its calls differ from those of the other ranks."""

    status = "rank_failed"


class CheckpointError(ScaleTrainError, OSError):
    """A file is damaged, or cannot be read or written; its path is `file`."""

    status = "io"


class NotFinite(ScaleTrainError, ArithmeticError):
    """A value that must be finite is infinite or NaN."""

    status = "not_finite"


class CallbackError(ScaleTrainError, RuntimeError):
    """A callback failed. An exception of a Python callback is reraised as it is instead."""

    status = "callback"


class InternalError(ScaleTrainError, RuntimeError):
    """A bug in the library."""


# Keys are the status numbers of error.h.
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


_C_FUNCTION = re.compile(r"""(?<![\w/."-])st_\w+(?![\w/"-])""")


def _name_here(found: re.Match[str]) -> str:
    """Trainer.forward for st_trainer_forward, Trainer for st_trainer_create, st.converted for st_view_convert."""
    from .handle import CALLS  # which imports this module

    name = CALLS.get(found[0], "").removesuffix(".__init__")
    return found[0] if not name else name if name[0].isupper() else f"st.{name}"


def error(
    status: int, message: str, op: str, tensor: str, file: str, host: str, offset: int, step: int, rank: int, collective: str
) -> ScaleTrainError:
    """The exception for the library's last error, whose ways out name this package's functions."""
    message = _C_FUNCTION.sub(_name_here, message)
    kind, name = _CLASSES.get(status, (InternalError, "internal"))
    if kind is NotFound and file and not tensor:
        kind = FileNotFound
    made = kind(message, op=op, tensor=tensor, file=file, host=host, offset=offset, step=step, rank=rank, collective=collective)
    made.status = name
    return made


def forget_frames(error: BaseException | None) -> None:
    """Clears the frames that an exception refers to: they may hold arrays over memory that is no longer valid."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            traceback.clear_frames(one.__traceback__)
            waiting += [one.__cause__, one.__context__]
