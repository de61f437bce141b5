"""The base class of the library's objects."""

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
    for name in ("_interpreters", "_xxsubinterpreters"):  # the names in Python 3.13 and before
        try:
            interpreters = importlib.import_module(name)
        except ImportError:
            continue
        return bool(interpreters.get_current() == interpreters.get_main())
    return True


if not _is_in_main_interpreter():  # the library's threads can only take the lock of the main interpreter
    raise ImportError("scaletrain works in the main interpreter only, not in a sub-interpreter; start a process instead")
try:
    from . import native
except ImportError as problem:
    raise ImportError(
        f"scaletrain: the native extension cannot be loaded: {problem}. It is _native.abi3.so next to {__file__} (x86-64 Linux, Python 3.11 "
        "or newer) and needs libscaletrain.so, which a wheel has next to it and which otherwise the loader must find. Reinstall the package, "
        "or build it."
    ) from problem

_Any = TypeVar("_Any", bound=Callable[..., Any])
_Self = TypeVar("_Self", bound="Handle")

CALLS: dict[str, str] = {}
"""Maps each C function to the Python function that calls it."""


@functools.cache
def _header_texts() -> dict[str, str]:
    return json.loads(resources.files(__package__).joinpath("headers.json").read_text())  # type: ignore[no-any-return]


def of_c(*names: str) -> Callable[[_Any], _Any]:
    """Names the C functions that a function calls, and appends their documentation to its docstring."""

    def documented(function: _Any) -> _Any:
        for name in names:
            CALLS[name] = function.__qualname__
        texts = [_header_texts().get(name, "") for name in names]
        parts = [function.__doc__ or "", *(f"{name}: {text}" for name, text in zip(names, texts) if text)]
        function.__doc__ = "\n\n".join(part for part in parts if part)
        return function

    return documented


class Handle:
    """An object of the library. close(), or the end of a with block, frees it at once; otherwise it is freed when nothing refers to it.

    Objects may be closed in any order: an object keeps what it needs of the objects it was created from.
    """

    __slots__ = ("_native",)
    _native: Any

    @classmethod
    def _native_of(cls, given: object) -> Any:
        """The native object of an argument, which must be of this class."""
        if not isinstance(given, cls):
            raise TypeError(f"a {cls.__name__} is required, got {given!r:.60} ({type(given).__name__})")
        return given._native

    if not TYPE_CHECKING:  # with it, a type checker would accept any attribute

        def __getattr__(self, name):
            """Called for a missing attribute."""
            if any(name in getattr(kind, "__slots__", ()) for kind in type(self).__mro__):
                raise InvalidHandle(f"this {type(self).__name__} was not initialised; a subclass calls super().__init__(...)")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def __repr__(self) -> str:
        try:
            about = "closed" if self._native.is_closed() else self._about()
        except ScaleTrainError as error:  # in use by another thread, or not initialised
            about = error.status
        return f"<scaletrain.{type(self).__name__}{' ' if about else ''}{about}>"

    def _about(self) -> str:
        """The details of this object for repr()."""
        return ""

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            f"a {type(self).__name__} cannot be copied or pickled: it is an object of the library in this process; use Model.clone(), write() "
            "and read() for a model's weights, to_dict() for a recipe"
        )

    def close(self) -> None:
        """Frees the object. Closing twice is allowed; any other call on a closed object raises InvalidHandle."""
        self._native.close()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


@contextlib.contextmanager
def one_at_a_time(lock: threading.Lock, call: str) -> Iterator[None]:
    """Guards a call whose result is still in the library's memory after the library has returned."""
    if not lock.acquire(blocking=False):
        raise Busy(f"{call}: another thread is in a call of this object; wait for it, or use one object per thread")
    try:
        yield
    finally:
        lock.release()


class Owned:
    """A function that the library may call as long as a Python object owns this.

    The garbage collector does not see references that the library holds. So if the library itself held the function, a reference cycle such
    as trainer.set_schedule(self.rate) would never be collected.
    """

    __slots__ = ("function", "__weakref__")

    def __init__(self, function: Any) -> None:
        self.function = function

    def weakly(self) -> Any:
        """The function to pass to the library, which refuses it if it cannot be called."""
        if not callable(self.function):
            return self.function
        here = weakref.ref(self)

        def call(*arguments: Any) -> Any:
            owned = here()
            return None if owned is None else owned.function(*arguments)

        return call


def to_json(options: dict[str, Any]) -> str:
    """Options as JSON; "" if there are none."""
    return plain_json(options) if options else ""


def plain_json(value: Any) -> str:
    """A value as JSON. NumPy's numbers and arrays become numbers and lists, paths become strings."""
    return json.dumps(value, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a setting must be a number, str, True, False, None, list or dict, got {value!r:.60} ({type(value).__name__})")


__all__ = ["CALLS", "Handle", "Owned", "native", "of_c", "one_at_a_time", "plain_json", "to_json"]
