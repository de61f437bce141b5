"""A trainer: one optimizer step at a time, planned whole beforehand."""

from __future__ import annotations

import json
import math
import os
import threading
from typing import Any, Callable, Mapping, Sequence

from .arrays import Array, copy_of, new_array
from .checkpoint import Checkpoint, Metadata, checkpoint_name, metadata_json
from .communicator import Communicator
from .data import Data
from .errors import Cancelled, InvalidArgument
from .handle import Handle, Owned, native, of_c, one_at_a_time, plain_json, to_json
from .load_options import load_options, load_report
from .model import Model
from .pending import Pending
from .progress import Progress
from .recipe import Recipe, recipe_of
from .recipe_settings import RecipeSettings
from .reports import Evaluation, LoadReport, StepReport

_LONGEST = 1e9  # seconds: 64 bits of nanoseconds hold them

Batch = Mapping[str, Array]
"""Arrays by the names of the model's inputs; their first dimension is the rows."""


class _LastingBatches:
    """Batches that the library reads beyond the call which gives them."""

    def __init__(self) -> None:
        self._kept: list[tuple[list[tuple[str, Any]], Any]] = []  # arrays by name, and what keeps their memory

    def reading(self, batch: Batch | None, call: Callable[[Any], Any]) -> Any:
        """The call, of a batch that is kept from now on; not where it raises."""
        if batch is None:
            return call(None)
        arrays = list(batch.items()) if isinstance(batch, dict) else []
        if self._kept:
            last, kept = self._kept[-1]
            if len(last) == len(arrays) and all(a[0] == b[0] and a[1] is b[1] for a, b in zip(last, arrays)):
                return call(kept)  # the same again
        kept = native.keep(batch)
        result = call(kept)
        self._kept.append((arrays, kept))
        return result

    def end_all_but_last(self) -> None:
        del self._kept[:-1]

    def end(self) -> None:
        self._kept.clear()


class Trainer(Handle):
    """Trains a model as a recipe says. With data, steps draw from it; without, each step is given its batch.

    communicator: of whose ranks it is one. Each rank makes a trainer of the same model, recipe and data and makes the same steps, on its own
    share of the data, or of its own rows; losses and states are those of one rank. Ranks that differ get a RankError, all the same one.
    """

    __slots__ = ("_model", "_data", "_copying", "_rate", "_forwarded", "_slices")

    @of_c("st_trainer_create", "st_trainer_create_in_group")
    def __init__(
        self,
        model: Model,
        recipe: Recipe | RecipeSettings | str,
        data: Data | None = None,
        communicator: Communicator | None = None,
    ) -> None:
        rows = () if data is None else (Data._native_of(data),)
        ranks = () if communicator is None else (Communicator._native_of(communicator),)
        self._native = native.Trainer(Model._native_of(model), recipe_of(recipe)._native, *rows, *ranks)
        self._model, self._data = model, data
        self._rate: Owned | None = None
        self._copying = threading.Lock()
        self._forwarded = _LastingBatches()  # until the backward behind it
        self._slices = _LastingBatches()  # until the step is whole

    def close(self) -> None:
        """Gives it back now."""
        with one_at_a_time(self._copying, "Trainer.close"):
            super().close()
            self._rate = None
            self._forwarded.end()
            self._slices.end()

    def _about(self) -> str:
        return f"of {self._model!r}"

    @of_c("st_trainer_step")
    def step(self, batch: Batch | None = None) -> StepReport:
        """One optimizer step. When it raises, the state is that of the last whole step."""
        return self._native.step(batch)  # type: ignore[no-any-return]

    @of_c("st_trainer_run")
    def run(self, steps: int, on_step: Callable[[StepReport], Any] | None = None, *, progress: bool = False) -> None:
        """Steps until `steps` in all are done, or stop() is called, or on_step(report) gives False. progress: shows a bar.

        on_step may make every call of this trainer but run() and close().
        """
        if not progress:
            self._native.run(steps, on_step)
            return
        bar = Progress(steps)

        def shown(report: StepReport) -> Any:
            bar(report)
            return on_step(report) if on_step is not None else None

        try:
            self._native.run(steps, shown)
        finally:
            bar.finish()

    @of_c("st_trainer_advance")
    def advance(self, seconds: float, batch: Batch | None = None) -> StepReport | None:
        """Works on the step for about so long; its report when it is whole. Call again with the same batch until then."""
        if math.isnan(seconds):
            raise InvalidArgument("advance: seconds is NaN; give a number, inf to go on until the step is whole")
        nanoseconds = round(min(max(seconds, 0), _LONGEST) * 1e9)
        try:
            report: StepReport | None = self._slices.reading(batch, lambda kept: self._native.work(kept, nanoseconds))
        except Cancelled:
            self._slices.end()
            raise
        if report is not None:
            self._slices.end()
        return report

    @of_c("st_trainer_forward")
    def forward(self, batch: Batch) -> dict[str, memoryview]:
        """The first part of a step whose loss the program computes: the model's outputs, copied. backward() and apply() follow.

        For PyTorch: torch.from_numpy(numpy.asarray(outputs["prediction"])).requires_grad_(), whose .grad goes to backward().
        """
        with one_at_a_time(self._copying, "Trainer.forward"):  # its memory, which close() ends
            outputs = self._forwarded.reading(batch, self._native.forward)
            self._forwarded.end_all_but_last()
            return {name: copy_of(memory) for name, memory in outputs.items()}

    @of_c("st_trainer_backward")
    def backward(self, output_gradients: Batch | None = None) -> None:
        """Gradients of the loss by outputs; None: the graph's own loss."""
        self._native.backward(output_gradients)
        self._forwarded.end()

    @of_c("st_trainer_apply")
    def apply(self) -> StepReport:
        """Ends the step that forward() began."""
        return self._native.apply()  # type: ignore[no-any-return]

    @of_c("st_trainer_evaluate")
    def evaluate(self, data: Data) -> Evaluation:
        """The loss and metrics over all rows, dropout off."""
        return self._native.evaluate(Data._native_of(data))  # type: ignore[no-any-return]

    @of_c("st_trainer_evaluate_average")
    def evaluate_average(self, data: Data) -> Evaluation:
        """evaluate() with the moving averages (the recipe's ema_decay) in the weights' place."""
        return self._native.evaluate_average(Data._native_of(data))  # type: ignore[no-any-return]

    @of_c("st_trainer_average")
    def average(self, name: str, out: Array | None = None) -> Any:
        """A parameter's moving average, copied into `out`, or into new memory in f32."""
        out = new_array(1, self._model._info(name).shape) if out is None else out
        self._native.average(name, out)
        return out

    @of_c("st_trainer_use_average")
    def use_average(self) -> None:
        """Makes the averages the model's weights."""
        self._native.use_average()

    @of_c("st_trainer_gradient")
    def gradient(self, name: str, out: Array | None = None) -> Any:
        """A parameter's gradient of the last step, before clipping, copied into `out`, or into new memory; f32."""
        out = new_array(1, self._model._info(name).shape) if out is None else out
        self._native.gradient(name, out)
        return out

    @of_c("st_trainer_set")
    def set(self, key: str, value: Any) -> None:
        """Changes a key of the recipe from the next step on: lr, warmup, lr_schedule and what it is made from."""
        self._native.set(key, plain_json(value))

    @of_c("st_trainer_get")
    def get(self, key: str) -> Any:
        """A key of the recipe as it is now."""
        return json.loads(self._native.value(key))

    @of_c("st_trainer_set_schedule")
    def set_schedule(self, rate: Callable[[int], float] | None) -> None:
        """The learning rate by the program: rate(k) is that of the step after k successful ones. None: the recipe's again."""
        owned = Owned(rate)
        self._native.set_schedule(owned.weakly())
        self._rate = owned

    @of_c("st_trainer_stop")
    def stop(self) -> None:
        """Ends a run after the running step; from any thread."""
        self._native.stop()

    @of_c("st_trainer_cancel")
    def cancel(self) -> None:
        """Ends the running call, which raises Cancelled; from any thread."""
        self._native.cancel()

    @of_c("st_trainer_digest")
    def digest(self) -> str:
        """32 hex digits over every parameter and optimizer value: two runs are equal when it is. Of ranks that have
        pieces of the state all call."""
        return self._native.digest()  # type: ignore[no-any-return]

    @of_c("st_trainer_plan")
    def plan(self) -> dict[str, Any]:
        """What a step takes: memory by role, and what goes over the wire."""
        return json.loads(self._native.plan())  # type: ignore[no-any-return]

    @of_c("st_trainer_explain")
    def explain(self) -> str:
        """Passes with their times, the program, memory by role: for people."""
        return self._native.explain()  # type: ignore[no-any-return]

    @of_c("st_trainer_timeline")
    def timeline(self) -> dict[str, Any]:
        """Where the time of the last steps went, by rank: computing, exchange, its hidden share, the straggler score."""
        return json.loads(self._native.timeline())  # type: ignore[no-any-return]

    @of_c("st_trainer_save")
    def save(self, checkpoint: Checkpoint, *, metadata: Metadata | None = None) -> None:
        """Saves all that the run is, and returns when it is on the disk. Ranks of a communicator that have pieces of the state (zero 1 to 3) all
        save and resume together: rank 0 by its checkpoint, the others by read_only ones of that folder."""
        self._native.save(Checkpoint._native_of(checkpoint), metadata_json(metadata))

    def save_async(self, checkpoint: Checkpoint, *, metadata: Metadata | None = None) -> Pending:
        """Saves the run as it is now, while it goes on."""
        return Pending(self._native.save_async(Checkpoint._native_of(checkpoint), metadata_json(metadata)))

    @of_c("st_trainer_save_every")
    def save_every(self, checkpoint: Checkpoint | None, steps: int = 0, *, minutes: float = 0) -> None:
        """From now on steps save in the background: after each that is a multiple of `steps`, and when `minutes` have passed. Their reports
        tell, in save_error, what went wrong. None: no more."""
        if checkpoint is None:
            self._native.save_no_more()
        else:
            self._native.save_every(Checkpoint._native_of(checkpoint), steps, minutes)

    @of_c("st_trainer_resume")
    def resume(
        self,
        checkpoint: Checkpoint,
        name: str | None = None,
        *,
        partial: bool = False,
        rename: Mapping[str, str] | None = None,
        names: Sequence[str] | None = None,
    ) -> LoadReport:
        """Goes on from the newest checkpoint that is whole, or from `name`: the steps from here on are those of the run that was not
        interrupted. partial, rename and names are Model.read's, for weights and their optimizer state together."""
        options = load_options(partial, rename, names)
        return load_report(self._native.resume_from(Checkpoint._native_of(checkpoint), checkpoint_name(name), *options))

    @of_c("st_trainer_log")
    def log(self, path: str | os.PathLike[str]) -> None:
        """From the next step on, one JSON object a step goes to `path`."""
        self._native.log(os.fsencode(path))

    @of_c("st_trainer_log_end")
    def log_end(self, validation_loss: float = float("nan")) -> None:
        """Writes the log's last line."""
        self._native.log_end(validation_loss)

    @of_c("st_trainer_write_report")
    def write_report(self, path: str | os.PathLike[str], **facts: Any) -> None:
        """One HTML page about the run so far. facts: texts and numbers shown as they are."""
        self._native.write_report(os.fsencode(path), to_json(facts))
