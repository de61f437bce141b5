"""A trainer: makes one optimizer step at a time; the whole step is planned in advance."""

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

_LONGEST = 1e9  # seconds; still fits in 64 bits as nanoseconds

Batch = Mapping[str, Array]
"""Arrays by the names of the model's inputs. Their first dimension is the rows."""


class _LastingBatches:
    """Keeps batches that the library reads after the call that passed them."""

    def __init__(self) -> None:
        self._kept: list[tuple[list[tuple[str, Any]], Any]] = []  # arrays by name, and the object that keeps their memory

    def reading(self, batch: Batch | None, call: Callable[[Any], Any]) -> Any:
        """Makes a call on a batch and keeps the batch, unless the call raises."""
        if batch is None:
            return call(None)
        arrays = list(batch.items()) if isinstance(batch, dict) else []
        if self._kept:
            last, kept = self._kept[-1]
            if len(last) == len(arrays) and all(a[0] == b[0] and a[1] is b[1] for a, b in zip(last, arrays)):
                return call(kept)  # the same batch as before
        kept = native.keep(batch)
        result = call(kept)
        self._kept.append((arrays, kept))
        return result

    def end_all_but_last(self) -> None:
        del self._kept[:-1]

    def end(self) -> None:
        self._kept.clear()


class Trainer(Handle):
    """Trains a model according to a recipe. With data, steps read their rows from it; without, the program passes a batch to each step.

    communicator: makes this trainer one of its ranks. Each rank creates a trainer with the same model, recipe and data and makes the same
    steps. A step reads the rank's share of the data, or, without data, the rows that the rank passes. Losses and states equal those of a single
    rank. If the ranks differ, all of them raise the same RankError.

    On such ranks, calls that read weights or state come in pairs. Without a suffix they read what this rank has, and raise WrongState at once if
    other ranks have parts of it. Those that end in _collective are called by all ranks, in the same order, and work for every recipe. All ranks
    make the steps, resume() and use_average().
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
        self._forwarded = _LastingBatches()  # kept until backward has read it
        self._slices = _LastingBatches()  # kept until the step is finished

    def close(self) -> None:
        """Frees the trainer."""
        with one_at_a_time(self._copying, "Trainer.close"):
            super().close()
            self._rate = None
            self._forwarded.end()
            self._slices.end()

    def _about(self) -> str:
        return f"of {self._model!r}"

    @of_c("st_trainer_step")
    def step(self, batch: Batch | None = None) -> StepReport:
        """One optimizer step. If it raises, the state is that of the last finished step."""
        return self._native.step(batch)  # type: ignore[no-any-return]

    @of_c("st_trainer_run")
    def run(self, steps: int, on_step: Callable[[StepReport], Any] | None = None, *, progress: bool = False) -> None:
        """Steps until the trainer has done `steps` in total, stop() is called, or on_step(report) returns False. progress shows a bar.

        on_step may make every call on this trainer except run() and close().
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
        """Works on the step for about this long. Returns the report if the step is finished; otherwise None: call again with the same batch."""
        if math.isnan(seconds):
            raise InvalidArgument("advance: seconds must be a number, or inf to finish the step, got NaN")
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
        """Begins a step whose loss the program computes. Returns copies of the model's outputs. backward() and apply() must follow.

        For PyTorch: torch.from_numpy(numpy.asarray(outputs["prediction"])).requires_grad_(), whose .grad goes to backward().
        """
        with one_at_a_time(self._copying, "Trainer.forward"):  # the outputs are in memory that close() frees
            outputs = self._forwarded.reading(batch, self._native.forward)
            self._forwarded.end_all_but_last()
            return {name: copy_of(memory) for name, memory in outputs.items()}

    @of_c("st_trainer_forward_into")
    def forward_into(self, batch: Batch, outputs: Mapping[str, Array]) -> None:
        """forward() that writes outputs to the program's arrays instead, each of an output's dtype and shape. On a device they may be in its
        memory: a Tensor of the context, or a PyTorch tensor there. Outputs left out are not copied.
        """
        self._forwarded.reading(batch, lambda kept: self._native.forward_into(kept, outputs))
        self._forwarded.end_all_but_last()

    @of_c("st_trainer_backward")
    def backward(self, output_gradients: Batch | None = None) -> None:
        """Takes the gradients of the loss by output name; None means the graph's own loss."""
        self._native.backward(output_gradients)
        self._forwarded.end()

    @of_c("st_trainer_apply")
    def apply(self) -> StepReport:
        """Clips, updates, and ends the step that forward() began."""
        return self._native.apply()  # type: ignore[no-any-return]

    @of_c("st_trainer_evaluate")
    def evaluate(self, data: Data) -> Evaluation:
        """The loss and metrics over all rows, with dropout off."""
        return self._native.evaluate(Data._native_of(data))  # type: ignore[no-any-return]

    @of_c("st_trainer_evaluate_collective")
    def evaluate_collective(self, data: Data) -> Evaluation:
        """evaluate(), called by all ranks with the same rows."""
        return self._native.evaluate_collective(Data._native_of(data))  # type: ignore[no-any-return]

    @of_c("st_trainer_evaluate_average")
    def evaluate_average(self, data: Data) -> Evaluation:
        """evaluate() with the moving averages (recipe key ema_decay) in place of the weights."""
        return self._native.evaluate_average(Data._native_of(data))  # type: ignore[no-any-return]

    @of_c("st_trainer_evaluate_average_collective")
    def evaluate_average_collective(self, data: Data) -> Evaluation:
        """evaluate_average(), called by all ranks with the same rows."""
        return self._native.evaluate_average_collective(Data._native_of(data))  # type: ignore[no-any-return]

    @of_c("st_trainer_average")
    def average(self, name: str, out: Array | None = None) -> Any:
        """Copies a parameter's moving average to `out`, or to new f32 memory."""
        out = new_array(1, self._model._info(name).shape) if out is None else out
        self._native.average(name, out)
        return out

    @of_c("st_trainer_average_collective")
    def average_collective(self, name: str, out: Array | None = None) -> Any:
        """average(), called by all ranks with the same name."""
        out = new_array(1, self._model._info(name).shape) if out is None else out
        self._native.average_collective(name, out)
        return out

    @of_c("st_trainer_use_average")
    def use_average(self) -> None:
        """Replaces the model's weights by their moving averages."""
        self._native.use_average()

    @of_c("st_trainer_gradient")
    def gradient(self, name: str, out: Array | None = None) -> Any:
        """Copies a parameter's gradient in the last step, before clipping, to `out`, an f32 array, or to new memory."""
        out = new_array(1, self._model._info(name).shape) if out is None else out
        self._native.gradient(name, out)
        return out

    @of_c("st_trainer_gradient_collective")
    def gradient_collective(self, name: str, out: Array | None = None) -> Any:
        """gradient(), called by all ranks with the same name."""
        out = new_array(1, self._model._info(name).shape) if out is None else out
        self._native.gradient_collective(name, out)
        return out

    @of_c("st_trainer_set")
    def set(self, key: str, value: Any) -> None:
        """Changes a recipe key from the next step on: lr, warmup, lr_schedule or a parameter of the schedule."""
        self._native.set(key, plain_json(value))

    @of_c("st_trainer_get")
    def get(self, key: str) -> Any:
        """The current value of a recipe key."""
        return json.loads(self._native.value(key))

    @of_c("st_trainer_set_schedule")
    def set_schedule(self, rate: Callable[[int], float] | None) -> None:
        """Lets the program set the learning rate: rate(k) is that of the step after k successful ones. None returns to the recipe's schedule."""
        owned = Owned(rate)
        self._native.set_schedule(owned.weakly())
        self._rate = owned

    @of_c("st_trainer_stop")
    def stop(self) -> None:
        """Ends a run after the current step. May be called from any thread."""
        self._native.stop()

    @of_c("st_trainer_cancel")
    def cancel(self) -> None:
        """Cancels the running call, which raises Cancelled. May be called from any thread."""
        self._native.cancel()

    @of_c("st_trainer_digest")
    def digest(self) -> str:
        """A digest of all parameters and optimizer values, 32 hex digits. Two runs are equal if their digests are. If the state is sharded, this
        is the last digest_collective(), unless the state has changed since."""
        return self._native.digest()  # type: ignore[no-any-return]

    @of_c("st_trainer_digest_collective")
    def digest_collective(self) -> str:
        """digest(), called by all ranks."""
        return self._native.digest_collective()  # type: ignore[no-any-return]

    @of_c("st_trainer_plan")
    def plan(self) -> dict[str, Any]:
        """The cost of a step: memory by role, bytes sent, collectives."""
        return json.loads(self._native.plan())  # type: ignore[no-any-return]

    @of_c("st_trainer_explain")
    def explain(self) -> str:
        """Readable text: the passes with their times, the program, and memory by role."""
        return self._native.explain()  # type: ignore[no-any-return]

    @of_c("st_trainer_forecast")
    def forecast(self, machine: dict[str, Any] | None = None) -> dict[str, Any]:
        """The predicted time of a step, and how it differs from the last one. machine is a calibrated one; None is this one, whose rates are
        from a table of processors."""
        return json.loads(self._native.forecast("" if machine is None else plain_json(machine)))  # type: ignore[no-any-return]

    @of_c("st_trainer_timeline")
    def timeline(self) -> dict[str, Any]:
        """Where the time of the last steps went, per rank: computing, exchange and its hidden share; also the straggler score.

        With pipeline stages, a rank also has its "stage", the share of the time in which it waited ("bubble") and its "actions": the
        forward or backward of each micro-batch, with its begin, end and waits.
        """
        return json.loads(self._native.timeline())  # type: ignore[no-any-return]

    @of_c("st_trainer_save")
    def save(self, checkpoint: Checkpoint, *, metadata: Metadata | None = None) -> None:
        """Saves the whole state of the run. Returns when it is on the disk."""
        self._native.save(Checkpoint._native_of(checkpoint), metadata_json(metadata))

    @of_c("st_trainer_save_collective")
    def save_collective(self, checkpoint: Checkpoint, *, metadata: Metadata | None = None) -> None:
        """save(), called by all ranks, which write one checkpoint: rank 0 with its checkpoint, the others with read_only ones of the same
        folder."""
        self._native.save_collective(Checkpoint._native_of(checkpoint), metadata_json(metadata))

    def save_async(self, checkpoint: Checkpoint, *, metadata: Metadata | None = None) -> Pending:
        """Saves the state of the run as it is now, in the background."""
        return Pending(self._native.save_async(Checkpoint._native_of(checkpoint), metadata_json(metadata)))

    def save_async_collective(self, checkpoint: Checkpoint, *, metadata: Metadata | None = None) -> Pending:
        """save_async(), called by all ranks as save_collective() is."""
        return Pending(self._native.save_async_collective(Checkpoint._native_of(checkpoint), metadata_json(metadata)))

    @of_c("st_trainer_save_every")
    def save_every(self, checkpoint: Checkpoint | None, steps: int = 0, *, minutes: float = 0) -> None:
        """Saves in the background from now on: after each step that is a multiple of `steps`, and whenever `minutes` have passed since the last
        save. A later step's report has the error of a failed save in save_error. A checkpoint of None ends this."""
        if checkpoint is None:
            self._native.save_no_more()
        else:
            self._native.save_every(Checkpoint._native_of(checkpoint), steps, minutes)

    @of_c("st_trainer_save_every_collective")
    def save_every_collective(self, checkpoint: Checkpoint | None, steps: int = 0, *, minutes: float = 0) -> None:
        """save_every(), called by all ranks with the same numbers. They save together, as by save_collective()."""
        if checkpoint is None:
            self._native.save_no_more_collective()
        else:
            self._native.save_every_collective(Checkpoint._native_of(checkpoint), steps, minutes)

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
        """Continues from the newest valid checkpoint, or from `name`. The results are bitwise equal to those of an uninterrupted run. partial,
        rename and names are those of Model.read(), for weights and their optimizer state together. NotFound says only that there is no
        checkpoint (of that name); InvalidArgument, that it is of another model or run."""
        options = load_options(partial, rename, names)
        return load_report(self._native.resume_from(Checkpoint._native_of(checkpoint), checkpoint_name(name), *options))

    @of_c("st_trainer_log")
    def log(self, path: str | os.PathLike[str]) -> None:
        """Writes one JSON object per step to `path`, from the next step on."""
        self._native.log(os.fsencode(path))

    @of_c("st_trainer_log_end")
    def log_end(self, validation_loss: float = float("nan")) -> None:
        """Writes the log's last line."""
        self._native.log_end(validation_loss)

    @of_c("st_trainer_write_report")
    def write_report(self, path: str | os.PathLike[str], **facts: Any) -> None:
        """Writes an HTML page about the run so far. facts are strings and numbers to show on the page."""
        self._native.write_report(os.fsencode(path), to_json(facts))
