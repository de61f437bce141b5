"""An object's own memory, exposed to the program."""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Callable, Iterator

from .errors import WrongState
from .handle import one_at_a_time


class SeenState:
    """Named arrays in the memory of an object. The object cannot be closed while one of them is in use."""

    __slots__ = ("_noun", "_lock", "_arrays")

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._lock = threading.Lock()
        self._arrays: dict[str, Any] = {}

    def arrays(self, of_library: Callable[[], dict[str, Any]]) -> dict[str, memoryview]:
        with one_at_a_time(self._lock, f"{self._noun}.state"):
            if not self._arrays:
                self._arrays = of_library()
            return {name: memoryview(memory) for name, memory in self._arrays.items()}

    @contextlib.contextmanager
    def ending(self) -> Iterator[None]:
        """Guards the closing of the object."""
        with one_at_a_time(self._lock, f"{self._noun}.close"):
            seen = [name for name, memory in self._arrays.items() if memory.exports]
            if seen:
                raise WrongState(f"{self._noun}.close: its state {seen[0]!r} is still in use; release() or drop its memoryviews first")
            yield
            self._arrays = {}
