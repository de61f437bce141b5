"""A custom training loop: a two-layer net with hand-written forward and backward, over the program's own arrays. The library scales the loss,
clips, schedules and updates. In one step the gradients overflow, and that step is skipped. Prints the same numbers as 09_own_loop.c."""

import sys
from typing import Iterator

import numpy
from numpy import float32

import scaletrain as st

DEVICE = sys.argv[-1] if "--device" in sys.argv else "cpu"  # --device NAME at the end
ROWS, HIDDEN = 64, 32


def uniform() -> Iterator[float32]:
    """Random numbers in [-1, 1)."""
    state = 1
    while True:
        state = (state * 1664525 + 1013904223) % 2**32
        yield float32(state >> 8) / float32(1 << 23) - float32(1)


class Net:
    """y = v . tanh(w x + b) and its gradients."""

    def __init__(self, numbers: Iterator[float32]) -> None:
        drawn = numpy.array([next(numbers) for _ in range(3 * HIDDEN)], float32).reshape(HIDDEN, 3)
        self.w, self.b, self.v = float32(2) * drawn[:, 0], drawn[:, 1].copy(), float32(0.1) * drawn[:, 2]
        self.gradients = [numpy.zeros(HIDDEN, float32) for _ in range(3)]

    def forward_backward(self, numbers: Iterator[float32], scale: float) -> float:
        """Returns the mean squared error against sin(3 x), and computes `scale` times its gradients."""
        x = numpy.array([next(numbers) for _ in range(ROWS)], float32).reshape(ROWS, 1)
        h = numpy.tanh(self.w * x + self.b)
        error = h @ self.v - numpy.sin(3 * x[:, 0])
        dy = (scale * 2 * error / ROWS).astype(float32).reshape(ROWS, 1)
        dh = dy * self.v * (1 - h * h)
        dw, db, dv = self.gradients
        dw[:], db[:], dv[:] = (dh * x).sum(axis=0), dh.sum(axis=0), (dy * h).sum(axis=0)
        return float((error * error / ROWS).sum())


def main() -> bool:
    numbers = uniform()
    net = Net(numbers)
    context = st.Context(device=DEVICE)
    scaler = st.LossScaler(context)
    schedule = st.Schedule("cosine", lr=0.02, warmup=20, lr_steps=600)
    groups = [{"pattern": "b", "weight_decay_scale": 0}]
    optimizer = st.Optimizer(context, {"w": net.w, "b": net.b, "v": net.v}, optimizer="adamw", groups=groups)
    first = loss = 0.0
    updates = skips = 0
    for step in range(1, 601):
        scale = scaler.scale
        loss = net.forward_backward(numbers, scale)
        if step == 300:
            net.gradients[0][7] = numpy.inf  # simulates an overflow of 16-bit gradients
        scaler.unscale(net.gradients)
        norm = st.clip_norm(context, net.gradients, 1)
        if scaler.step():
            optimizer.set("lr", schedule(updates))
            optimizer.step(net.gradients)
            updates += 1
        skips += scaler.update()
        if step == 1:
            first = loss
        if step == 1 or step % 150 == 0:
            print(f"step {step:3d}  loss {loss:.4f}  norm {norm:.3f}  scale {scale:.0f}")
    print(f"{skips} of 600 steps was skipped")
    return loss <= 0.02 * first and skips == 1 and updates == 599


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
