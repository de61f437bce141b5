"""Python's side of language_steps.py: language_step.c describes it."""

import sys
import time

import numpy

import scaletrain as st

ROWS, CONTEXT = 8, 32


def main():
    numbers = numpy.arange(ROWS * CONTEXT + 1, dtype=numpy.int32) * 7 % 256
    batch = {"tokens": numbers[:-1].reshape(ROWS, CONTEXT), "targets": numbers[1:].reshape(ROWS, CONTEXT)}
    context = st.Context(threads=1)
    model = st.Model.builtin(context, "gpt", seed=1, layers=2, width=64, heads=2, context=CONTEXT)
    trainer = st.Trainer(model, {"batch": ROWS})
    for line in sys.stdin:
        begin = time.perf_counter_ns()
        for _ in range(int(line)):
            trainer.step(batch)
        print(time.perf_counter_ns() - begin, flush=True)


if __name__ == "__main__":
    main()
