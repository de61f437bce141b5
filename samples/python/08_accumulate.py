"""Gradient accumulation: the gradient of 12 rows at once, and of the same rows as 4 micro-batches of 3. The rows have different numbers of
tokens, so the mean of the four means is a different number. Prints the same numbers as 08_accumulate.c."""

import sys

import numpy
from numpy import float32

import scaletrain as st

DEVICE = sys.argv[-1] if "--device" in sys.argv else "cpu"  # --device NAME at the end
ROWS, MICRO_BATCH, WIDTH = 12, 3, 8
TOKENS = (9, 4, 7, 8, 8, 2, 5, 9, 6, 1, 3, 2)


def noise(i: int) -> float32:
    """A number between -1 and 1 that depends only on i."""
    return float32(((i * 1664525 + 1013904223) * 22695477 % 2**32) >> 8) / float32(1 << 23) - float32(1)


def backward(w: numpy.ndarray, dw: numpy.ndarray, begin: int, end: int) -> int:
    """Sets dw to the gradient of the squared error of rows [begin, end), *summed* over tokens. Returns the number of tokens."""
    tokens = 0
    dw[:] = 0
    for row in range(begin, end):
        for t in range(TOKENS[row]):
            x = numpy.array([noise(row * 1000 + t * 10 + j) for j in range(WIDTH)], float32)
            error = -noise(row + t)
            for j in range(WIDTH):
                error += w[j] * x[j]
            dw += float32(2) * error * x
            tokens += 1
    return tokens


def show(what: str, gradient: numpy.ndarray) -> None:
    print(f"{what:<22}" + "".join(f" {value:9.6f}" for value in gradient[:4]) + " ...")


def largest_difference(a: numpy.ndarray, b: numpy.ndarray) -> float:
    return float(numpy.abs(a.astype(numpy.float64) - b).max())


def main() -> bool:
    w = numpy.array([float32(0.1) * float32(j - 3) for j in range(WIDTH)], float32)
    dw, means = numpy.zeros(WIDTH, float32), numpy.zeros(WIDTH, float32)
    with st.Context(device=DEVICE) as context, st.Accumulator(context, 1, [dw]) as accumulator:  # writes to dw in place
        accumulator.add(backward(w, dw, 0, ROWS))
        whole_step = accumulator.should_step()
        whole = dw.copy()
        show("12 rows at once", whole)

        accumulator.set_steps(ROWS // MICRO_BATCH)
        for begin in range(0, ROWS, MICRO_BATCH):
            count = backward(w, dw, begin, begin + MICRO_BATCH)
            means += dw / float32(count) * float32(MICRO_BATCH) / float32(ROWS)
            accumulator.add(count)  # the last add() writes the mean to dw
            whole_step = accumulator.should_step()
            print(f"  {count:2d} tokens{', and now dw is for the optimizer' if whole_step else ''}")
        show("4 micro-batches of 3", dw)
        show("a mean of means", means)
        apart, wrong = largest_difference(dw, whole), largest_difference(means, whole)
        print(f"over {accumulator.weight:.0f} tokens: largest difference {apart:.1e}, of a mean of means {wrong:.1e}")
        return whole_step and accumulator.weight == 64 and apart < 1e-6 and wrong > 1e-2


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
