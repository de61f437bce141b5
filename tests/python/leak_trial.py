"""The program that test_leaks.py runs under valgrind. Makes steps and the other long calls more than once, with saves, errors and callbacks. At the end it
leaks a schedule on purpose; it creates no other one."""

import gc
import tempfile

import numpy

import scaletrain as st
from scaletrain import native


def main(folder: str) -> None:
    x = numpy.linspace(-3, 3, 64, dtype=numpy.float32).reshape(64, 1)
    batch = {"x": x, "y": numpy.sin(x)}
    with st.Context(threads=2, log=lambda *record: None) as context:
        model = st.Model.builtin(context, "mlp", hidden=[8], seed=1)
        trainer = st.Trainer(model, {"batch": 64}, st.Data.arrays(context, batch))
        for _ in range(10):
            trainer.step(batch)
        trainer.run(30, lambda report: None)
        predictor = st.Predictor(model)
        out = numpy.empty((64, 1), numpy.float32)
        checkpoint = st.Checkpoint(context, folder, keep_last=2)
        trainer.save_every(checkpoint, 4)
        for round in range(3):
            predictor.run({"x": x}, {"prediction": out})
            trainer.forward(batch)
            trainer.backward()
            trainer.apply()
            optimizer = st.Optimizer(context, {"w": out}, optimizer="adamw")
            optimizer.step([x])
            numpy.from_dlpack(st.Tensor.of(context, out)).sum()
            checkpoint.save_async(round + 1000, batch, metadata={"note": "in the background"}).result()
            checkpoint.load({"x": out, "z": out.copy()}, partial=True, rename={"y": "z"}, names=["*"])
            for wrong in (lambda: trainer.step({"x": x}), lambda: trainer.run(300, lambda report: 1 / 0),
                          lambda: checkpoint.load({"none": out}), lambda: trainer.resume(checkpoint)):  # fmt: skip
                try:
                    wrong()
                except (st.ScaleTrainError, ZeroDivisionError):
                    pass
    native.Schedule('{"lr": 0.1}').thisown = False
    del context, model, trainer, predictor, optimizer, checkpoint
    gc.collect()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(folder)
