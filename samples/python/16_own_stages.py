"""A pipeline of the program's own stages: a model of four layers, with hand-written forward and backward, is cut into stages on ranks, here
threads of this process. The library runs a schedule and sends activations and gradients. The weights have the same bits as with one stage.
Prints the same numbers as 16_own_stages.c.

    16_own_stages.py [gpipe|1f1b|zb-h1|interleaved|zb-v]
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Iterator

import numpy
from numpy import float32

import scaletrain as st

DEVICE = sys.argv[-1] if "--device" in sys.argv else "cpu"  # --device NAME at the end
LAYERS, WIDTH, ROWS, MICRO_BATCHES, STEPS = 4, 8, 8, 8, 200


def uniform(state: int) -> Iterator[float32]:
    """Random numbers in [-1, 1)."""
    while True:
        state = (state * 1664525 + 1013904223) % 2**32
        yield float32(state >> 8) / float32(1 << 23) - float32(1)


def drawn(seed: int, *shape: int) -> Any:
    numbers = uniform(seed)
    return numpy.array([next(numbers) for _ in range(int(numpy.prod(shape)))], float32).reshape(shape)


class Model:
    """Each layer, y = tanh(x w), is a part. Only the rank of its stage uses its weights."""

    def __init__(self) -> None:
        self.weights = float32(0.6) * drawn(1, LAYERS, WIDTH, WIDTH)
        self.gradients = numpy.zeros_like(self.weights)
        self.inputs = drawn(2, MICRO_BATCHES, ROWS, WIDTH)
        self.targets = float32(0.5) * numpy.sin(3 * self.inputs)
        self.predictions = numpy.zeros_like(self.targets)


class Layers:
    """The stage of a rank: its layers."""

    def __init__(self, model: Model) -> None:
        self.model, self.loss = model, 0.0
        self.parts: set[int] = set()

    def x(self, work: st.StageWork) -> Any:
        return self.model.inputs[work.micro_batch] if work.input is None else numpy.asarray(work.input)

    def y(self, work: st.StageWork) -> Any:
        return self.model.predictions[work.micro_batch] if work.output is None else numpy.asarray(work.output)

    def dz(self, work: st.StageWork) -> Any:
        """The gradient of x w. The last part begins with the loss, the mean squared error."""
        y, targets = self.y(work), self.model.targets
        dy = 2 * (y - targets[work.micro_batch]) / targets.size if work.output_gradient is None else numpy.asarray(work.output_gradient)
        return dy * (1 - y * y)

    def forward(self, work: st.StageWork) -> None:
        self.parts.add(work.part)
        y = self.y(work)
        y[:] = numpy.tanh(self.x(work) @ self.model.weights[work.part])
        if work.output is None:
            self.loss += float(((y - self.model.targets[work.micro_batch]) ** 2).sum()) / self.model.targets.size

    def backward_input(self, work: st.StageWork) -> None:
        if work.input_gradient is not None:
            numpy.asarray(work.input_gradient)[:] = self.dz(work) @ self.model.weights[work.part].T

    def backward_weight(self, work: st.StageWork) -> None:
        self.model.gradients[work.part] += self.x(work).T @ self.dz(work)

    def update(self) -> None:
        """Gradient descent with a learning rate of 1."""
        for part in self.parts:
            self.model.weights[part] -= self.model.gradients[part]
            self.model.gradients[part] = 0


def train_stage(model: Model, rank: st.Communicator, schedule: str, chunks: int) -> tuple[float, list[float]]:
    """Returns the bubble, and the losses on the rank with the last part."""
    stage = Layers(model)
    losses: list[float] = []
    types = [("f32", (ROWS, WIDTH))] * chunks
    with st.Pipeline(rank, schedule, types, types, stage) as pipeline:
        for _ in range(STEPS):
            pipeline.run(MICRO_BATCHES)
            stage.update()
            losses.append(stage.loss)
            stage.loss = 0.0
        return pipeline.schedule(MICRO_BATCHES)["bubble"], losses


def train(model: Model, schedule: str, stages: int) -> None:
    ranks = st.Communicator.local(st.Context(device=DEVICE), stages)
    with ThreadPoolExecutor(stages) as threads:
        results = list(threads.map(lambda rank: train_stage(model, rank, schedule, LAYERS // stages), ranks))
    bubble, losses = max(results, key=lambda result: result[1][0])
    shown = "".join(f"  {losses[step]:.4f}" for step in (0, 49, 99, 149, 199))
    print(f"{schedule:<11}  {stages} stage{' ' if stages == 1 else 's'}  bubble {bubble:.3f}  loss{shown}")


def main() -> bool:
    schedule = sys.argv[1] if sys.argv[1:2] not in ([], ["--device"]) else "1f1b"
    has_two = schedule in ("interleaved", "zb-v")  # parts a stage
    alone, model = Model(), Model()
    train(alone, "interleaved", 1)  # all parts on one stage
    train(model, schedule, 2 if has_two else LAYERS)
    alike: bool = alone.weights.tobytes() == model.weights.tobytes()
    print("the weights have the same bits" if alike else "the weights differ")
    return alike


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
