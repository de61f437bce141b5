"""Work that goes on after the call which began it."""

from __future__ import annotations

import contextlib
import math
from typing import Any, Callable, Generator

from .errors import InvalidArgument, Timeout
from .handle import Handle, native, of_c


_LONGEST = 1e9  # seconds: 30 years are for ever


def wait_in_slices(wait_for: Callable[[int], bool], timeout: float | None) -> None:
    """wait_for(milliseconds) until it says yes, at most `timeout` seconds: then Timeout."""
    slice_ms = 100  # between two looks at Ctrl-C
    if timeout is not None and math.isnan(timeout):
        raise InvalidArgument("timeout: it is NaN; give seconds, or None to wait for ever")
    left_ms = -1 if timeout is None or timeout > _LONGEST else max(0, round(timeout * 1000))
    while True:
        now_ms = slice_ms if left_ms < 0 else min(slice_ms, left_ms)
        if wait_for(now_ms):
            return
        if left_ms >= 0:
            left_ms -= now_ms
            if left_ms == 0:
                raise Timeout(f"it is not done after {timeout} s")


class Pending(Handle):
    """Like a future; in asyncio: await pending. Closing it waits for the end."""

    __slots__ = ("_lent",)

    def __init__(self, made: object, lent: object = None) -> None:
        """lent: arrays that are used until it is done."""
        if not isinstance(made, native.Pending):
            raise TypeError("a Pending is given by the call that begins the work")
        self._native = made
        self._lent = lent

    @of_c("st_pending_wait")
    def result(self, timeout: float | None = None) -> None:
        """Waits until it is done, at most `timeout` seconds. Raises what the work failed with, each time; Timeout: still under way."""
        wait_in_slices(self._native.wait_for, timeout)

    def __await__(self) -> Generator[Any, None, None]:
        """result(), while asyncio's loop goes on."""
        import asyncio  # here, since most programs do without, and it takes as long to import as all of this

        return asyncio.to_thread(self.result).__await__()

    def close(self) -> None:
        """Waits for the end, and gives it back."""
        super().close()
        self._lent = None

    def __del__(self) -> None:
        """Arrays go after the work on them: of slots Python would drop them first."""
        with contextlib.suppress(Exception):  # one that was not made has no slots
            if self._lent is not None:
                self.close()

    @of_c("st_pending_poll")
    def done(self) -> bool:
        """Whether result() would return at once."""
        return self._native.is_done()  # type: ignore[no-any-return]
