"""A model: a graph and its parameters."""

from __future__ import annotations

import json
import os
from typing import Any, BinaryIO, Callable, Mapping, Sequence

from .arrays import Array, name_of, new_array
from .checkpoint import Checkpoint, checkpoint_name
from .context import Context
from .errors import NotFound
from .graph import Graph
from .handle import Handle, native, of_c, to_json
from .load_options import load_options, load_report
from .pending import Pending
from .reports import LoadReport, ParameterInfo, ReadReport


def gpt2_names() -> dict[str, str]:
    """Maps the names in Hugging Face's GPT-2 files to those of the model "gpt": model.read(file, rename=gpt2_names()) reads a model.safetensors
    as it is. Old files also hold causal masks; partial=True ignores them. Model.builtin(context, "gpt2", **json.load(config_json)) creates the
    model that the config.json next to the file describes."""
    return json.loads(native.gpt2_names_json())  # type: ignore[no-any-return]


class Model(Handle):
    """A graph and its parameters, which are initialised from a seed. Model.builtin() creates a built-in model.

    The trainer of a rank shards its model over the ranks with zero 3, stages or tensor. Then get, digest, clone and the writes raise WrongState
    at once, unless this rank has what they read. Those that end in _collective are called by all ranks, in the same order, and give each the
    whole; they work for every model.
    """

    __slots__ = ()

    @of_c("st_model_create")
    def __init__(self, graph: Graph, seed: int = 0) -> None:
        self._native = native.Model(Graph._native_of(graph), seed)

    @staticmethod
    def _of(made: Any) -> Model:
        model = Model.__new__(Model)
        model._native = made
        return model

    @staticmethod
    @of_c("st_model_builtin")
    def builtin(context: Context, name: str, /, *, seed: int = 0, **options: Any) -> Model:
        """Creates a built-in model: "gpt", "llama" or "mlp", or "gpt2" or "llama-hf", whose options are the keys of Hugging Face's config.json.
        For example Model.builtin(context, "gpt", layers=2, width=64, heads=2, context=32)."""
        return Model._of(native.Model(Context._native_of(context), name, to_json(options), seed))

    def _about(self) -> str:
        return f"of {self._native.parameter_count()} parameters"

    @of_c("st_model_clone")
    def clone(self) -> Model:
        """A model with the same graph and a copy of the parameters."""
        return Model._of(self._native.clone())

    @of_c("st_model_clone_collective")
    def clone_collective(self) -> Model:
        """clone(), called by all ranks: a whole model on each."""
        return Model._of(self._native.clone_collective())

    @property
    @of_c("st_model_parameter", "st_model_parameter_count")
    def parameters(self) -> list[ParameterInfo]:
        """Descriptions of all parameters."""
        infos = (self._native.parameter(i) for i in range(self._native.parameter_count()))
        return [info._replace(dtype=name_of(info.dtype)) for info in infos]

    @of_c("st_model_get")
    def get(self, name: str, out: Array | None = None) -> Any:
        """Copies a whole parameter to `out`, converted if necessary, or to new f32 memory: numpy.asarray(model.get("w"))."""
        if out is None:
            out = new_array(1, self._info(name).shape)
        self._native.get_parameter(name, out)
        return out

    @of_c("st_model_get_collective")
    def get_collective(self, name: str, out: Array | None = None) -> Any:
        """get(), called by all ranks with the same name."""
        if out is None:
            out = new_array(1, self._info(name).shape)
        self._native.get_collective(name, out)
        return out

    @of_c("st_model_set")
    def set(self, name: str, values: Array) -> None:
        """Sets a whole parameter from a copy of `values`, converted if necessary."""
        self._native.set_parameter(name, values)

    def _info(self, name: str) -> ParameterInfo:
        for info in self.parameters:
            if info.name == name:
                return info
        raise NotFound(f"the model has no parameter {name!r}; Model.parameters lists all", tensor=name)

    @of_c("st_model_blend")
    def blend(self, other: Model, t: float) -> None:
        """self += t (other - self)."""
        self._native.blend(Model._native_of(other), t)

    @of_c("st_model_digest")
    def digest(self) -> str:
        """A digest of 32 hex digits. Two models are equal if their digests are."""
        return self._native.digest()  # type: ignore[no-any-return]

    @of_c("st_model_digest_collective")
    def digest_collective(self) -> str:
        """digest(), called by all ranks."""
        return self._native.digest_collective()  # type: ignore[no-any-return]

    @of_c("st_model_write_file")
    def write_file(self, path: str | os.PathLike[str]) -> None:
        """Writes all parameters as a safetensors file."""
        self._native.write_file(os.fsencode(path))

    def write_file_async(self, path: str | os.PathLike[str]) -> Pending:
        """Writes the weights as they are now, in the background."""
        return Pending(self._native.write_file_async(os.fsencode(path)))

    @of_c("st_model_write_file_collective")
    def write_file_collective(self, path: str | os.PathLike[str]) -> None:
        """write_file(), called by all ranks. Rank 0 writes; the paths of the others are ignored."""
        self._native.write_file_collective(os.fsencode(path))

    def write_file_async_collective(self, path: str | os.PathLike[str]) -> Pending:
        """write_file_async(), called by all ranks. Rank 0 writes; the paths of the others are ignored."""
        return Pending(self._native.write_file_async_collective(os.fsencode(path)))

    @of_c("st_model_read_file")
    def read_file(
        self,
        path: str | os.PathLike[str],
        *,
        partial: bool = False,
        rename: Mapping[str, str] | None = None,
        names: Sequence[str] | None = None,
    ) -> ReadReport:
        """Reads parameters from a safetensors file, a folder with one, or the index of a sharded one. partial, rename and names are those of
        read()."""
        return self._native.read_from_file(os.fsencode(path), *load_options(partial, rename, names))  # type: ignore[no-any-return]

    @of_c("st_model_write")
    def write(self, to: BinaryIO | Callable[[bytes], Any]) -> None:
        """Writes all parameters as one safetensors stream, front to back, to an open file or a function that takes bytes."""
        write = getattr(to, "write", to)
        self._native.write(write)

    @of_c("st_model_write_collective")
    def write_collective(self, to: BinaryIO | Callable[[bytes], Any]) -> None:
        """write(), called by all ranks. Each writes the whole stream."""
        write = getattr(to, "write", to)
        self._native.write_collective(write)

    @of_c("st_model_read")
    def read(
        self,
        source: BinaryIO | Callable[[int], Any],
        *,
        partial: bool = False,
        rename: Mapping[str, str] | None = None,
        names: Sequence[str] | None = None,
    ) -> ReadReport:
        """Reads parameters from a safetensors stream: an open file, or a function that returns at most n bytes, and b"" at the end.

        partial: reads the tensors whose names match and reports the others.
        rename: maps names of the stream to names of the model. "*", at most once in each, matches any text:
        {"h.*.ln_1.weight": "block.*.attention_norm.gamma"}.
        names: patterns of model names, ["block.*.mlp.*"]. A parameter that matches none is not changed and is neither missing nor unexpected.
        """
        read = getattr(source, "read", source)
        return self._native.read_from(read, *load_options(partial, rename, names))  # type: ignore[no-any-return]

    @of_c("st_model_load")
    def load(
        self,
        checkpoint: Checkpoint,
        name: str | None = None,
        *,
        partial: bool = False,
        rename: Mapping[str, str] | None = None,
        names: Sequence[str] | None = None,
    ) -> LoadReport:
        """Reads only the weights from a trainer's checkpoint: the newest valid one, or `name`. partial, rename and names are those of read()."""
        options = load_options(partial, rename, names)
        return load_report(self._native.load_from(Checkpoint._native_of(checkpoint), checkpoint_name(name), *options))
