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
    """Names in Hugging Face's files of GPT-2 to those of the model "gpt": model.read(file, rename=gpt2_names()) takes a model.safetensors as it
    is; partial=True passes over the causal masks that old ones hold. Model.builtin(context, "gpt2", **json.load(config_json)) is the model that
    the config.json next to the file describes."""
    return json.loads(native.gpt2_names_json())  # type: ignore[no-any-return]


class Model(Handle):
    """A graph and its parameters, which begin as the seed says. Model.builtin() makes one of ours."""

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
        """Model.builtin(context, "gpt", layers=2, width=64, heads=2, context=32), "gpt2" with the keys of Hugging
        Face's config.json, or "mlp"."""
        return Model._of(native.Model(Context._native_of(context), name, to_json(options), seed))

    def _about(self) -> str:
        return f"of {self._native.parameter_count()} parameters"

    @of_c("st_model_clone")
    def clone(self) -> Model:
        """The same graph, its own copy of the parameters."""
        return Model._of(self._native.clone())

    @property
    @of_c("st_model_parameter", "st_model_parameter_count")
    def parameters(self) -> list[ParameterInfo]:
        """What is known about each."""
        infos = (self._native.parameter(i) for i in range(self._native.parameter_count()))
        return [info._replace(dtype=name_of(info.dtype)) for info in infos]

    @of_c("st_model_get")
    def get(self, name: str, out: Array | None = None) -> Any:
        """A whole parameter, copied (and converted) into `out`, or into new memory in f32: numpy.asarray(model.get("w"))."""
        if out is None:
            out = new_array(1, self._info(name).shape)
        self._native.get_parameter(name, out)
        return out

    @of_c("st_model_set")
    def set(self, name: str, values: Array) -> None:
        """A whole parameter, copied and converted."""
        self._native.set_parameter(name, values)

    def _info(self, name: str) -> ParameterInfo:
        for info in self.parameters:
            if info.name == name:
                return info
        raise NotFound(f"the model has no parameter {name!r}; Model.parameters names all", tensor=name)

    @of_c("st_model_blend")
    def blend(self, other: Model, t: float) -> None:
        """self += t (other - self)."""
        self._native.blend(Model._native_of(other), t)

    @of_c("st_model_digest")
    def digest(self) -> str:
        """32 hex digits; two models are equal when it is."""
        return self._native.digest()  # type: ignore[no-any-return]

    @of_c("st_model_write_file")
    def write_file(self, path: str | os.PathLike[str]) -> None:
        """All parameters, as safetensors."""
        self._native.write_file(os.fsencode(path))

    def write_file_async(self, path: str | os.PathLike[str]) -> Pending:
        """The weights as they are now, written while the caller goes on."""
        return Pending(self._native.write_file_async(os.fsencode(path)))

    @of_c("st_model_read_file")
    def read_file(
        self,
        path: str | os.PathLike[str],
        *,
        partial: bool = False,
        rename: Mapping[str, str] | None = None,
        names: Sequence[str] | None = None,
    ) -> ReadReport:
        """Parameters from a safetensors file, a folder that has one, or the index of its shards. partial, rename and names are read()'s."""
        return self._native.read_from_file(os.fsencode(path), *load_options(partial, rename, names))  # type: ignore[no-any-return]

    @of_c("st_model_write")
    def write(self, to: BinaryIO | Callable[[bytes], Any]) -> None:
        """All parameters as one safetensors stream, front to back, to a file that is open or a function of bytes."""
        write = getattr(to, "write", to)
        self._native.write(write)

    @of_c("st_model_read")
    def read(
        self,
        source: BinaryIO | Callable[[int], Any],
        *,
        partial: bool = False,
        rename: Mapping[str, str] | None = None,
        names: Sequence[str] | None = None,
    ) -> ReadReport:
        """Parameters from a safetensors stream: a file that is open, or a function that gives at most so many bytes and b"" at the end.

        partial: read what fits by name, and report the rest. rename: names of the stream to names of the model; "*", once,
        stands for any text: {"h.*.ln_1.weight": "block.*.attention_norm.gamma"}. names: patterns of the model's names, ["block.*.mlp.*"];
        what fits none of them stays as it is, and is neither missing nor unexpected.
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
        """The weights alone out of a trainer's checkpoint: the newest that is whole, or `name`. partial, rename and names are read()'s."""
        options = load_options(partial, rename, names)
        return load_report(self._native.load_from(Checkpoint._native_of(checkpoint), checkpoint_name(name), *options))
