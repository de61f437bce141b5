"""The cost of a call from Python, with the same call's time in C where the library reports it: medians over rounds, in microseconds.

PYTHONPATH=build/release/python .venv/bin/python tests/bench/python_calls.py [ROUNDS]
"""

import statistics
import sys
import time

import numpy

import scaletrain as st

CALLS = 2000


def microseconds(call, rounds):
    """Median over rounds of the mean of CALLS calls, and the spread: the middle half of the rounds."""
    means = []
    for _ in range(rounds):
        begin = time.perf_counter_ns()
        for _ in range(CALLS):
            call()
        means.append((time.perf_counter_ns() - begin) / CALLS / 1000)
    low, middle, high = statistics.quantiles(means, n=4)
    return f"{middle:6.2f}  ({low:.2f} to {high:.2f})"


def main(rounds=15):
    context = st.Context(threads=1)
    scaler, schedule = st.LossScaler(context), st.Schedule("cosine", lr_steps=1000)
    a = numpy.ones((4, 4), numpy.float32)
    c, gemm, optimizer = a.copy(), st.Gemm(context, 4, 4, 4), st.Optimizer(context, {"w": a.copy()}, optimizer="sgd")
    x = numpy.ones((1, 1), numpy.float32)
    predictor = st.Predictor(st.Model.builtin(context, "mlp", hidden=[8]))
    out = x.copy()
    for name, call in [
        ("loss_scaler.scale", lambda: scaler.scale),
        ("schedule(7)", lambda: schedule(7)),
        ("gemm.run of 4 cubed, three arrays", lambda: gemm.run(a, a, c)),
        ("optimizer.step of 16 numbers", lambda: optimizer.step([a])),
        ("predictor.run of one row", lambda: predictor.run({"x": x}, {"prediction": out})),
    ]:
        print(f"{name:<36} {microseconds(call, rounds)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
