"""An interrupted run: ten steps, a checkpoint, ten more steps. A second trainer resumes from the checkpoint and repeats the last ten steps bit
for bit, with the same rows, dropout, learning rate and moments. Prints the same numbers as 10_checkpoint_resume.c."""

import json
import sys
import tempfile

import numpy
from numpy import float32

import scaletrain as st

DEVICE = sys.argv[-1] if "--device" in sys.argv else "cpu"  # --device NAME at the end
ROWS = 96


def make_trainer(context: st.Context) -> st.Trainer:
    """A trainer for y = x^2. The library reads the rows of these arrays in shuffled order."""
    x = (float32(-1) + float32(2) * numpy.arange(ROWS, dtype=float32) / float32(ROWS - 1)).reshape(ROWS, 1)
    data = st.Data.arrays(context, {"x": x, "y": x * x})
    model = st.Model.builtin(context, "mlp", seed=1, inputs=1, hidden=[32], outputs=1)
    return st.Trainer(model, {"batch": 32, "lr": 0.01, "dropout": 0.1, "warmup": 15}, data)


def train(trainer: st.Trainer, until: int) -> None:
    def show(report: st.StepReport) -> None:
        if report.step % 5 == 0:
            print(f"  step {report.step:2d}  loss {report.loss:.9f}  lr {report.lr:.6f}")

    trainer.run(until, show)


def main() -> bool:
    with tempfile.TemporaryDirectory() as folder, st.Context(device=DEVICE) as context, st.Checkpoint(context, folder) as checkpoint:
        print("the first trainer")
        first = make_trainer(context)
        train(first, 10)
        saved = first.save_async(checkpoint, metadata={"note": "half of it"})  # returns when the state is copied
        train(first, 20)
        saved.result()

        print("the second one")
        second = make_trainer(context)
        loaded = second.resume(checkpoint)  # the newest valid checkpoint
        print(f"  resumed from {loaded.name}, {loaded.read} tensors, {json.dumps(loaded.metadata, separators=(',', ':'))}")
        train(second, 20)

        same = first.digest() == second.digest()
        print("the same bits" if same else "they differ")
        return same


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
