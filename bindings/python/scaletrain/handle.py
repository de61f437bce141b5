"""What every object of the library has in common."""

from __future__ import annotations

import functools
import json
from importlib import resources
from types import TracebackType
from typing import Any, Callable, TypeVar

try:
    from . import native
except ImportError as problem:
    raise ImportError(
        f"scaletrain: its native part cannot be loaded: {problem}. It is _native.abi3.so beside {__file__} (x86-64 Linux, Python 3.11 or "
        "newer), which needs libscaletrain.so: in a wheel beside it, else where the loader looks. Install the package anew, or build it."
    ) from problem

_Any = TypeVar("_Any", bound=Callable[..., Any])
_Self = TypeVar("_Self", bound="Handle")

CALLS: dict[str, str] = {}
"""Functions of the C ABI, and where they are in Python."""


@functools.cache
def _header_texts() -> dict[str, str]:
    return json.loads(resources.files(__package__).joinpath("headers.json").read_text())  # type: ignore[no-any-return]


def of_c(*names: str) -> Callable[[_Any], _Any]:
    """Says which functions of the C ABI a function is; it has their documentation."""

    def documented(function: _Any) -> _Any:
        for name in names:
            CALLS[name] = function.__qualname__
        texts = [_header_texts().get(name, "") for name in names]
        parts = [function.__doc__ or "", *(f"{name}: {text}" for name, text in zip(names, texts) if text)]
        function.__doc__ = "\n\n".join(part for part in parts if part)
        return function

    return documented


class Handle:
    """An object of the library. close(), or the end of a with block, gives it back at once; else it goes when nothing holds it.

    In any order: what was made of it keeps what it needs.
    """

    __slots__ = ("_native",)
    _native: Any

    def close(self) -> None:
        """Gives it back now. Closing twice is fine; any other call afterwards is an InvalidHandle."""
        self._native.close()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def to_json(options: dict[str, Any]) -> str:
    """"" where there are none."""
    return json.dumps(options) if options else ""


__all__ = ["CALLS", "Handle", "native", "of_c", "to_json"]
