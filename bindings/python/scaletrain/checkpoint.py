"""Checkpoints of a run in a folder: saves, also in the background, and loads of the newest valid one."""

from __future__ import annotations

import json
import math
import os
from typing import Any, Mapping, Sequence

from .arrays import Array
from .context import Context
from .handle import Handle, native, of_c, plain_json
from .load_options import given_map, load_options, load_report
from .pending import Pending, wait_in_slices
from .reports import LoadReport, SaveProgress

Metadata = Mapping[str, "str | int | float | bool"]
"""Metadata that the program stores with a checkpoint; a load returns each value as a str."""

_Entries = list[dict[str, Any]]


def metadata_json(metadata: Metadata | None) -> str:
    """Writes a number that is not finite as a string, since JSON has none: a save must not fail because a loss is NaN."""
    return plain_json({key: _finite(value) for key, value in given_map("metadata", metadata).items()})


def _finite(value: Any) -> Any:
    number = value.tolist() if hasattr(value, "tolist") else value
    return str(number) if isinstance(number, float) and not math.isfinite(number) else number


def checkpoint_name(name: str | None) -> str:
    """The name in the form that the extension takes: "" is the newest."""
    return "" if name is None else name


class Checkpoint(Handle):
    """The checkpoints of a run in one folder, which is created. A trainer saves with Trainer.save() and save_every(), a program with its own
    loop with save(). Closing or dropping it waits for the running saves.

    keep_last: number of newest checkpoints of this run that are kept; 0 keeps all. Those that were in the folder are
        another run's until one was loaded or resumed.
    keep_every: also keeps each checkpoint whose step is a multiple of this; 0 for none.
    keep_best: also keeps this many best checkpoints by the number named `best` in the metadata or training state; 0 for none.
    best_is_higher: whether a higher `best` is better.
    queue: saves that may queue while one is being written; if the queue is full, the call waits.
    bytes_per_second: limit of the disk bandwidth that saves use; 0 for no limit.
    file_bytes: maximum size of a file; a tensor that is larger gets a file of its own.
    read_only: allows only list, verify and load, even while another process saves; the folder may then be a single checkpoint.
    """

    __slots__ = ()

    @of_c("st_checkpoint_create")
    def __init__(
        self,
        context: Context,
        folder: str | os.PathLike[str],
        *,
        keep_last: int = 3,
        keep_every: int = 0,
        keep_best: int = 0,
        best: str = "",
        best_is_higher: bool = False,
        queue: int = 0,
        bytes_per_second: float = 0,
        file_bytes: int = 4 << 30,
        read_only: bool = False,
    ) -> None:
        options = native.CheckpointOptions()
        options.keep_last = keep_last
        options.keep_every = keep_every
        options.keep_best = keep_best
        options.best = best
        options.best_is_higher = best_is_higher
        options.queue = queue
        options.bytes_per_second = bytes_per_second
        options.file_bytes = file_bytes
        options.read_only = read_only
        self._native = native.Checkpoint(Context._native_of(context), os.fsencode(folder), options)

    @of_c("st_checkpoint_save")
    def save(self, step: int, arrays: Mapping[str, Array], *, metadata: Metadata | None = None) -> None:
        """Saves named arrays of any dtype, shape and strides. Returns when they are on the disk."""
        self._native.save(step, arrays, metadata_json(metadata))

    def save_async(self, step: int, arrays: Mapping[str, Array], *, metadata: Metadata | None = None) -> Pending:
        """Saves the arrays in the background, as they are now: they are copied before this returns.

        The Pending reports errors. If it is dropped without being asked, wait() raises the error.
        """
        return Pending(self._native.save_async(step, arrays, metadata_json(metadata)))

    @of_c("st_checkpoint_load")
    def load(
        self,
        arrays: Mapping[str, Array],
        name: str | None = None,
        *,
        partial: bool = False,
        rename: Mapping[str, str] | None = None,
        names: Sequence[str] | None = None,
        overwrite: bool = False,
    ) -> LoadReport:
        """Loads the newest valid checkpoint, or the one called `name` ("step-00000120"), into these arrays in place.

        partial, rename and names are those of Model.load(). After an error no array has changed. With overwrite the files are read only once,
        which takes half the time, but after an error in the data the arrays may hold a mixture of old and new values.
        """
        return load_report(self._native.load_to(arrays, checkpoint_name(name), overwrite, *load_options(partial, rename, names)))

    @of_c("st_checkpoint_list")
    def list(self) -> _Entries:
        """The folder's checkpoints, newest first. Each is a dict with name, step and problem: None, or why the checkpoint is not valid."""
        return json.loads(self._native.list())  # type: ignore[no-any-return]

    @of_c("st_checkpoint_inspect")
    def inspect(self, name: str | None = None) -> dict[str, Any]:
        """The manifest of a checkpoint: step, training state, recipe, metadata, files, tensors."""
        return json.loads(self._native.inspect(checkpoint_name(name)))  # type: ignore[no-any-return]

    @of_c("st_checkpoint_verify")
    def verify(self, name: str | None = None) -> dict[str, Any]:
        """Reads a whole checkpoint. "problems" lists what is damaged; it is empty if every byte is as it was written."""
        return json.loads(self._native.verify(checkpoint_name(name)))  # type: ignore[no-any-return]

    @of_c("st_checkpoint_hash")
    def hash(self, name: str | None = None) -> str:
        """A digest of all tensors, 32 hex digits; for a trainer's checkpoint it equals Trainer.digest()."""
        return self._native.hash(checkpoint_name(name))  # type: ignore[no-any-return]

    @of_c("st_checkpoint_reshard")
    def reshard(self, folder: str | os.PathLike[str], shards: int = 0, *, name: str | None = None) -> None:
        """Rewrites a checkpoint into a new or empty folder, with each tensor cut into `shards` files; with 0, tensors are written whole."""
        self._native.reshard(os.fsencode(folder), shards, checkpoint_name(name))

    @of_c("st_checkpoint_export")
    def export(self, path: str | os.PathLike[str], *, name: str | None = None, everything: bool = False) -> None:
        """Writes the weights of a checkpoint as a single safetensors file. With everything, it also holds the optimizer state."""
        self._native.export_to(os.fsencode(path), everything, checkpoint_name(name))

    @of_c("st_checkpoint_wait")
    def wait(self, timeout: float | None = None) -> None:
        """Waits until no save is running; raises Timeout after `timeout` seconds. Raises the error of a failed save if it has not been
        reported yet; each is reported once. May be called from any thread."""
        wait_in_slices(self._native.wait_for, timeout)

    @of_c("st_checkpoint_progress")
    def progress(self) -> SaveProgress:
        """Progress of the saves. May be called from any thread."""
        return self._native.progress()  # type: ignore[no-any-return]
