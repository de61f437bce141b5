"""Predicts while training: one thread trains a net on y = sin x while another predicts the same value repeatedly. Each prediction uses the
weights of one finished step, taken by Predictor.refresh. No thread waits for another. Prints the same numbers as 04_predict_while_training.c."""

import math
import sys
import threading

import numpy

import scaletrain as st

DEVICE = sys.argv[-1] if "--device" in sys.argv else "cpu"  # --device NAME at the end
ROWS, ROUNDS, STEPS = 64, 4, 150


def ask(predictor: st.Predictor, x: float) -> float:
    """Runs a forward pass of one row. May be called from any thread at any time."""
    answer = numpy.empty((1, 1), numpy.float32)
    predictor.run({"x": numpy.array([[x]], numpy.float32)}, {"prediction": answer})
    return float(answer[0, 0])


def main() -> bool:
    x = (numpy.float32(-3) + numpy.float32(6) * numpy.arange(ROWS, dtype=numpy.float32) / numpy.float32(ROWS - 1)).reshape(ROWS, 1)
    batch = {"x": x, "y": numpy.sin(x.astype(numpy.float64)).astype(numpy.float32)}
    context = st.Context(device=DEVICE)
    model = st.Model.builtin(context, "mlp", seed=1, hidden=[32])
    trainer = st.Trainer(model, {"batch": 64, "lr": 0.01, "weight_decay": 0})
    predictor = st.Predictor(model)  # has a snapshot of the weights, 4 bytes per parameter

    def train() -> None:
        for _ in range(STEPS):
            trainer.step(batch)

    steady = True
    answer = ask(predictor, 1.5)
    for turn in range(1, ROUNDS + 1):
        thread = threading.Thread(target=train)
        thread.start()
        for _ in range(200):  # the snapshot does not change while the trainer runs
            steady = steady and ask(predictor, 1.5) == answer
        thread.join()
        predictor.refresh()  # also allowed during a step: takes the weights of the newest finished one
        answer = ask(predictor, 1.5)
        print(f"after {turn * STEPS:3d} steps  sin 1.5 is about {answer:.3f}")
    learned = abs(answer - math.sin(1.5)) < 0.05 and steady
    print("it answered while it learned" if learned else "it did not")
    return learned


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
