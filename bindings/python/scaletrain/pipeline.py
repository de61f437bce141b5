"""A pipeline of the program's own stages: the program computes; the library runs a schedule and sends between the ranks."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace
from typing import Any, Protocol, Sequence

from .arrays import number_of
from .communicator import Communicator
from .handle import Handle, Owned, native, of_c, one_at_a_time
from .reports import StageWork

Type = tuple[object, Sequence[int]]
"""Dtype and shape of a part's input or output, without batch dimensions."""


class Stage(Protocol):
    """The program's stage: an object with these methods. Arrays are memoryviews, or None where there is nothing; numpy.asarray(x) takes one
    without a copy. They may be kept, as by an autograd graph, from the forward of a micro-batch until the last call of its backward.

    An exception that a method raises ends the run on all ranks and is reraised by run() on this one.
    """

    def forward(self, work: StageWork) -> None:
        """Fills work.output from work.input. The last part also computes its loss."""

    def backward_input(self, work: StageWork) -> None:
        """Fills work.input_gradient from work.output_gradient. The last part begins with its loss."""

    # def backward_weight(self, work): adds to the gradients of the part's weights. Without it backward_input does that.


class Pipeline(Handle):
    """Pipeline(communicator, "1f1b", [("f32", (8, 16))], [("f32", (8, 16))], stage): runs the program's stages under a schedule.

    All ranks must create it together; rank s is stage s. In a step, call run(micro_batches), then update the weights.
    schedule: "gpipe", "1f1b", "zb-h1", "interleaved", "zb-v", or a table in PyTorch's notation.
    inputs, outputs: one type for each chunk of this rank; None for the first part's input and the last part's output.
    """

    __slots__ = ("_arrays", "_functions", "_lock")

    @of_c("st_pipeline_create")
    def __init__(
        self, communicator: Communicator, schedule: str, inputs: Sequence[Type | None], outputs: Sequence[Type | None], stage: Stage
    ) -> None:
        self._lock = threading.Lock()
        self._arrays = native.new_stage_arrays()
        self._functions = [Owned(stage.forward), Owned(stage.backward_input), Owned(getattr(stage, "backward_weight", None))]
        forward, backward_input, backward_weight = (owned.weakly() for owned in self._functions)
        given = SimpleNamespace(forward=forward, backward_input=backward_input, backward_weight=backward_weight, arrays=self._arrays)
        self._native = native.Pipeline(Communicator._native_of(communicator), schedule, _types(inputs), _types(outputs), given)

    @of_c("st_pipeline_run")
    def run(self, micro_batches: int) -> None:
        """Calls the stage's methods for so many micro-batches, on this thread. All ranks must call it with the same number."""
        with one_at_a_time(self._lock, "Pipeline.run"):
            try:
                self._native.run(micro_batches)
            finally:
                native.release_stage_arrays(self._arrays)

    @of_c("st_pipeline_schedule")
    def schedule(self, micro_batches: int) -> dict[str, Any]:
        """Describes such a run without running it: its table, bubble, bytes of buffers and bytes sent."""
        return json.loads(self._native.schedule(micro_batches))  # type: ignore[no-any-return]


def _types(types: Sequence[Type | None]) -> list[tuple[int, tuple[int, ...]]]:
    return [(1, ()) if given is None else (number_of(given[0]), tuple(given[1])) for given in types]


__all__ = ["Pipeline", "Stage", "StageWork"]
