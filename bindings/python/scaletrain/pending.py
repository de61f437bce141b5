"""Operations that run in the background."""

from __future__ import annotations

import contextlib
import math
from typing import Any, Callable, Generator

from .errors import InvalidArgument, Timeout
from .handle import Handle, native, of_c


_LONGEST = 1e9  # seconds; 30 years count as forever


def wait_in_slices(wait_for: Callable[[int], bool], timeout: float | None) -> None:
    """Calls wait_for(milliseconds) until it returns True; raises Timeout after `timeout` seconds."""
    slice_ms = 100  # time between two checks for Ctrl-C
    if timeout is not None and math.isnan(timeout):
        raise InvalidArgument("timeout must be a number of seconds, or None to wait forever, got NaN")
    left_ms = -1 if timeout is None or timeout > _LONGEST else max(0, round(timeout * 1000))
    while True:
        now_ms = slice_ms if left_ms < 0 else min(slice_ms, left_ms)
        if wait_for(now_ms):
            return
        if left_ms >= 0:
            left_ms -= now_ms
            if left_ms == 0:
                raise Timeout(f"the operation was not done after {timeout} s")


class Pending(Handle):
    """A running operation, like a future; with asyncio, use await pending. Closing it waits until the operation has ended."""

    __slots__ = ("_borrowed",)

    def __init__(self, made: object, borrowed: object = None) -> None:
        """borrowed: arrays that are kept until the operation is done."""
        if not isinstance(made, native.Pending):
            raise TypeError("a Pending is created by the call that begins the operation")
        self._native = made
        self._borrowed = borrowed

    @of_c("st_pending_wait")
    def result(self, timeout: float | None = None) -> None:
        """Waits until the operation is done; raises Timeout after `timeout` seconds. Raises its error if it failed, on every call."""
        wait_in_slices(self._native.wait_for, timeout)

    def __await__(self) -> Generator[Any, None, None]:
        """Waits for result() without blocking asyncio's loop."""
        import asyncio  # imported here, since most programs do not need it and it takes as long to import as this whole package

        return asyncio.to_thread(self.result).__await__()

    def close(self) -> None:
        """Waits until the operation has ended, and frees the object."""
        super().close()
        self._borrowed = None

    def __del__(self) -> None:
        """Closes first: Python would drop the arrays in the slots while the operation is still running."""
        with contextlib.suppress(Exception):  # if __init__ failed, the slots are unset
            if self._borrowed is not None:
                self.close()

    @of_c("st_pending_poll")
    def done(self) -> bool:
        """Whether result() would return at once."""
        return self._native.is_done()  # type: ignore[no-any-return]
