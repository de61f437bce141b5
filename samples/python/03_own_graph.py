"""A custom model with two inputs and one output, fitted to arrays of this program, which the library reads in place.
Prints the same numbers as 03_own_graph.c."""

import sys

import numpy

import scaletrain as st

DEVICE = sys.argv[-1] if "--device" in sys.argv else "cpu"  # --device NAME at the end
ROWS, STEPS = 1024, 1000


def describe(graph: st.Graph) -> None:
    """Uses layers where there are some, else ops. An invalid call raises."""
    point = graph.input("point", "f32", (st.BATCH, 2))
    wanted = graph.input("height", "f32", (st.BATCH, 1))
    hidden = st.ops.tanh(graph.linear("hidden", point, 32, init="kaiming", scale=2))
    found = graph.linear("out", st.ops.concat([hidden, point], axis=-1), 1)
    graph.output("found", found)
    graph.loss(st.ops.mse(found, wanted))


def main() -> bool:
    side = (-1 + 2 * numpy.arange(32, dtype=numpy.float32) / 31).astype(numpy.float32)
    points = numpy.stack([numpy.tile(side, 32), numpy.repeat(side, 32)], axis=1)
    x, y = points[:, :1], points[:, 1:]
    heights = (numpy.exp(-2 * (x * x + y * y)) + numpy.float32(0.5) * x).astype(numpy.float32)  # a hill on a slope

    context = st.Context(device=DEVICE)
    graph = st.Graph(context)
    describe(graph)
    data = st.Data.arrays(context, {"point": points, "height": heights})  # not copied: the data keeps the arrays
    trainer = st.Trainer(st.Model(graph, seed=1), {"batch": 64, "lr": 0.01, "weight_decay": 0}, data)
    loss = float("nan")

    def on_step(report: st.StepReport) -> None:
        nonlocal loss
        loss = report.loss
        if report.step % 100 == 0:
            print(f"step {report.step:3d}  loss {report.loss:.5f}")

    trainer.run(STEPS, on_step)
    print("it knows the hill" if loss < 0.001 else "it does not know the hill")
    return loss < 0.001


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
