"""A predictor: forward passes of a model, from any number of threads."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

from .arrays import Array
from .handle import Handle, native, of_c
from .model import Model


def _options(shared: bool, threads: int) -> Any:
    options = native.PredictorOptions()
    options.shared = shared
    options.threads = threads
    return options


class Predictor(Handle):
    """Runs forward passes of a model.

    shared: uses the model's current weights instead of a snapshot.
    threads: threads of one run.
    """

    __slots__ = ()

    @of_c("st_predictor_create")
    def __init__(self, model: Model, *, shared: bool = False, threads: int = 1) -> None:
        self._native = native.Predictor(Model._native_of(model), _options(shared, threads))

    @classmethod
    @of_c("st_predictor_create_collective")
    def collective(cls, model: Model, *, shared: bool = False, threads: int = 1) -> Predictor:
        """A predictor that all ranks create, whose runs, refreshes and generations all ranks make too, each with its own rows or text. It works
        for every model; Predictor() raises WrongState for one that is sharded over ranks."""
        made = cls.__new__(cls)
        made._native = native.Predictor.collective(Model._native_of(model), _options(shared, threads))
        return made

    @of_c("st_predictor_run")
    def run(self, inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> None:
        """Computes the outputs for any number of rows. Several threads may call it at once, even while a trainer steps."""
        self._native.run(inputs, outputs)

    @of_c("st_predictor_refresh")
    def refresh(self) -> None:
        """Switches to the weights of the newest finished step."""
        self._native.refresh()

    @of_c("st_predictor_generate")
    def generate(
        self,
        prompt: Sequence[int] | bytes,
        *,
        tokens: int = 200,
        temperature: float = 0.8,
        top_k: int = 40,
        seed: int = 0,
        on_token: Callable[[int], Any] | None = None,
    ) -> list[int]:
        """Continues the prompt and returns the new tokens. on_token receives each new token; it may return False to stop."""
        options = native.GenerateOptions()
        options.tokens = tokens
        options.temperature = temperature
        options.top_k = top_k
        options.seed = seed
        made: list[int] = []

        def take(token: int) -> Any:
            made.append(token)
            return on_token(token) if on_token is not None else None

        self._native.generate(list(prompt), options, take)
        return made
