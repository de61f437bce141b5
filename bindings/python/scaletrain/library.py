"""Queries about the library itself."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found, unused-ignore]
import atexit
import json
import os
import signal
import threading
import types
from typing import Any

from . import errors, reports
from .arrays import Bf16
from .handle import native, of_c
from .tensor import Tensor


def _give() -> None:
    classes = [reports.StepReport, reports.Evaluation, reports.OptimizerReport, reports.MemoryUse, reports.MemoryStats,
               reports.ParameterInfo, reports.ReadReport, reports.LoadReport, reports.SaveProgress, reports.StageWork, Bf16, Tensor]  # fmt: skip
    # For deciding whether Ctrl-C raises KeyboardInterrupt. Uses _signal.getsignal, since signal.getsignal makes an enum of each result.
    interrupts = (threading.main_thread().ident, _signal.getsignal, (signal.SIGINT,), signal.default_int_handler)
    unstarted = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
    names: dict[str, Any] = {kind.__name__: kind for kind in classes}
    native.give({**names, "error": errors.error, "interrupts": interrupts, "forget_frames": errors.forget_frames, "unstarted": unstarted})


_give()
native.require_as_compiled()  # raises here, instead of in a later call, if the library has another version
atexit.register(native.end)
os.register_at_fork(after_in_child=native.forked)


@of_c("st_version")
def version() -> str:
    """The version of the loaded library."""
    return native.version()  # type: ignore[no-any-return]


@of_c("st_require")
def require(major: int, minor: int) -> None:
    """Raises Unsupported if the library cannot serve a program written for version major.minor."""
    native.require(major, minor)


@of_c("st_features")
def features() -> dict[str, Any]:
    """Version, devices, transports, why a device or transport is missing, instruction sets, cores, memory and ops."""
    return json.loads(native.features())  # type: ignore[no-any-return]


@of_c("st_weights_inspect")
def inspect_weights(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Describes a safetensors file, a folder with one, or the index of a sharded one, without reading values.

    {"files": [{"path", "bytes", "metadata"}], "tensors": [{"name", "dtype", "shape", "file", "begin", "end", "readable"}], "foreign": 0}:
    readable is False for a dtype that no call can read ("I8"); "foreign" counts these tensors.
    """
    return json.loads(native.inspect_weights(os.fsencode(path)))  # type: ignore[no-any-return]


@of_c("st_live_handles")
def live_handles(kind: str | None = None) -> int:
    """Number of library objects that have not been released, of one kind ("trainer") or of all kinds."""
    return native.live_handles() if kind is None else native.live_handles_of(kind)  # type: ignore[no-any-return]
