"""Checkpoints: a run's folder, saved into in the background, and loaded from the newest that is whole."""

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
"""A program's own words on a checkpoint; a load gives each back as a text."""

_Entries = list[dict[str, Any]]


def metadata_json(metadata: Metadata | None) -> str:
    """A number that is not finite goes as a text, as JSON has none: a save must not fail because a loss is NaN."""
    return plain_json({key: _finite(value) for key, value in given_map("metadata", metadata).items()})


def _finite(value: Any) -> Any:
    number = value.tolist() if hasattr(value, "tolist") else value
    return str(number) if isinstance(number, float) and not math.isfinite(number) else number


def checkpoint_name(name: str | None) -> str:
    """As the extension takes it: "" is the newest."""
    return "" if name is None else name


class Checkpoint(Handle):
    """The checkpoints of a run in one folder, which is made. A trainer saves there by Trainer.save() and save_every(), a program with its
    own loop by save().

    keep_last: the newest so many stay; 0: all. keep_every: and each whose step is a multiple of it. keep_best: and the best so many by
    `best`, the name of a number in the metadata or the training state; best_is_higher. queue: saves that may wait behind the one that is
    being written. bytes_per_second: what writing may take of the disk; 0: all there is. file_bytes: of one file. read_only: lists, verifies
    and loads only, beside a process that saves; the folder may be a single checkpoint then.

    Its end, by close() too, waits for the saves that are under way.
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
        """Saves arrays by name, of any dtype, shape and strides, and returns when they are on the disk."""
        self._native.save(step, arrays, metadata_json(metadata))

    def save_async(self, step: int, arrays: Mapping[str, Array], *, metadata: Metadata | None = None) -> Pending:
        """Saves them as they are now, in the background: they are copied before this returns, and nothing of them is kept.

        Where the Pending goes unasked, wait() tells what went wrong.
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
        """Fills arrays where they lie, from the newest checkpoint that is whole, or from `name`, "step-00000120".

        partial, rename and names are Model.load's. overwrite: reads once, so in half the time, and after an error in the data the arrays may
        hold a mixture; else none has changed then.
        """
        return load_report(self._native.load_to(arrays, checkpoint_name(name), overwrite, *load_options(partial, rename, names)))

    @of_c("st_checkpoint_list")
    def list(self) -> _Entries:
        """The folder's checkpoints, newest first: each a dict of name, step and problem, which is None or why it is no good."""
        return json.loads(self._native.list())  # type: ignore[no-any-return]

    @of_c("st_checkpoint_inspect")
    def inspect(self, name: str | None = None) -> dict[str, Any]:
        """All that one says of itself: step, training state, recipe, metadata, files, tensors."""
        return json.loads(self._native.inspect(checkpoint_name(name)))  # type: ignore[no-any-return]

    @of_c("st_checkpoint_verify")
    def verify(self, name: str | None = None) -> dict[str, Any]:
        """Reads all of one: what is damaged is in its "problems", an empty list when every byte is as it was written."""
        return json.loads(self._native.verify(checkpoint_name(name)))  # type: ignore[no-any-return]

    @of_c("st_checkpoint_hash")
    def hash(self, name: str | None = None) -> str:
        """32 hex digits over all tensors; of a trainer's checkpoint its Trainer.digest()."""
        return self._native.hash(checkpoint_name(name))  # type: ignore[no-any-return]

    @of_c("st_checkpoint_reshard")
    def reshard(self, folder: str | os.PathLike[str], shards: int = 0, *, name: str | None = None) -> None:
        """Writes one anew into an empty folder, as `shards` files with equal parts of each tensor; 0: whole tensors."""
        self._native.reshard(os.fsencode(folder), shards, checkpoint_name(name))

    @of_c("st_checkpoint_export")
    def export(self, path: str | os.PathLike[str], *, name: str | None = None, everything: bool = False) -> None:
        """Writes the weights of one as a single safetensors file. everything: and the optimizer's state."""
        self._native.export_to(os.fsencode(path), everything, checkpoint_name(name))

    @of_c("st_checkpoint_wait")
    def wait(self, timeout: float | None = None) -> None:
        """Until no save is under way, at most `timeout` seconds: then Timeout. Raises the error of a save that nobody was told of yet, once.
        From any thread."""
        wait_in_slices(self._native.wait_for, timeout)

    @of_c("st_checkpoint_progress")
    def progress(self) -> SaveProgress:
        """Of the saves that are under way. From any thread."""
        return self._native.progress()  # type: ignore[no-any-return]
