"""A first training step: a two-layer net, built op by op, learns y = sin x from arrays of this program. Prints the same numbers as
01_first_step.c."""

import array
import math
import sys

import scaletrain as st

DEVICE = sys.argv[-1] if "--device" in sys.argv else "cpu"  # --device NAME at the end
ROWS, WIDTH, STEPS = 64, 32, 400


def linear(graph: st.Graph, name: str, x: st.Value, inputs: int, outputs: int) -> st.Value:
    with graph.scope(name):
        weight = graph.parameter("weight", (inputs, outputs), init="xavier")
        return x @ weight + graph.parameter("bias", (outputs,), init="zeros")


def main() -> bool:
    x = array.array("f", (-3 + 6 * i / (ROWS - 1) for i in range(ROWS)))
    y = array.array("f", map(math.sin, x))
    batch = {name: memoryview(values).cast("B").cast("f", (ROWS, 1)) for name, values in (("x", x), ("y", y))}

    context = st.Context(device=DEVICE)
    graph = st.Graph(context)
    hidden = st.ops.gelu(linear(graph, "first", graph.input("x", "f32", (st.BATCH, 1)), 1, WIDTH))
    prediction = linear(graph, "second", hidden, WIDTH, 1)
    graph.loss(st.ops.mse(prediction, graph.input("y", "f32", (st.BATCH, 1))))

    trainer = st.Trainer(st.Model(graph, seed=1), {"batch": 64, "lr": 0.01, "weight_decay": 0})
    for _ in range(STEPS):
        report = trainer.step(batch)
        if report.step % 100 == 0 or report.step == 1:
            print(f"step {report.step:3d}  loss {report.loss:.5f}")
    learned = report.loss < 0.01
    print("it learned the sine" if learned else "it did not learn the sine")
    return learned


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
