"""What every object of the library has in common."""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import os
import threading
import weakref
from importlib import resources
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Iterator, TypeVar

from .errors import Busy, InvalidHandle, ScaleTrainError



def _is_in_main_interpreter() -> bool:
    for name in ("_interpreters", "_xxsubinterpreters"):  # of 3.13, and before
        try:
            interpreters = importlib.import_module(name)
        except ImportError:
            continue
        return bool(interpreters.get_current() == interpreters.get_main())
    return True


if not _is_in_main_interpreter():  # the library's threads find the main one's lock alone
    raise ImportError("scaletrain works in the main interpreter only, not in a sub-interpreter; start a process instead")
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

    @classmethod
    def _native_of(cls, given: object) -> Any:
        """The native part of one that a call is given."""
        if not isinstance(given, cls):
            raise TypeError(f"a {cls.__name__} is wanted here, not {given!r:.60} ({type(given).__name__})")
        return given._native

    if not TYPE_CHECKING:  # a type checker would take any name for one that is there

        def __getattr__(self, name):
            """Of what is not there."""
            if any(name in getattr(kind, "__slots__", ()) for kind in type(self).__mro__):
                raise InvalidHandle(f"this {type(self).__name__} was not made: a class of its own calls super().__init__(...)")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def __repr__(self) -> str:
        try:
            about = "closed" if self._native.is_closed() else self._about()
        except ScaleTrainError as error:  # in use by another thread, or not made
            about = error.status
        return f"<scaletrain.{type(self).__name__}{' ' if about else ''}{about}>"

    def _about(self) -> str:
        """For repr(): what tells it from others of its class."""
        return ""

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            f"a {type(self).__name__} cannot be copied or pickled: it belongs to the library, in this process; a model's weights go by "
            "Model.clone(), write() and read(), a recipe by to_dict()"
        )

    def close(self) -> None:
        """Gives it back now. Closing twice is fine; any other call afterwards is an InvalidHandle."""
        self._native.close()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


@contextlib.contextmanager
def one_at_a_time(lock: threading.Lock, call: str) -> Iterator[None]:
    """For a call whose outcome is still in the library's memory when the library has returned."""
    if not lock.acquire(blocking=False):
        raise Busy(f"{call}: another thread is in a call of this object; wait for it, or use one object per thread")
    try:
        yield
    finally:
        lock.release()


class Owned:
    """A function that the library calls for as long as an object of Python's owns this.

    What the library itself holds no garbage collector sees: an object with a function of its own in it (trainer.set_schedule(self.rate))
    would be a circle that never goes.
    """

    __slots__ = ("function", "__weakref__")

    def __init__(self, function: Any) -> None:
        self.function = function

    def weakly(self) -> Any:
        """For the library. What cannot be called it refuses."""
        if not callable(self.function):
            return self.function
        here = weakref.ref(self)

        def call(*arguments: Any) -> Any:
            owned = here()
            return None if owned is None else owned.function(*arguments)

        return call


def to_json(options: dict[str, Any]) -> str:
    """"" where there are none."""
    return plain_json(options) if options else ""


def plain_json(value: Any) -> str:
    """NumPy's numbers and arrays are numbers and lists, paths are texts."""
    return json.dumps(value, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{value!r:.60} ({type(value).__name__}) is no value for JSON: numbers, texts, True, False, None, lists and dicts are")


__all__ = ["CALLS", "Handle", "Owned", "native", "of_c", "one_at_a_time", "plain_json", "to_json"]
