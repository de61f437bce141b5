"""Tensor ranks: two ranks, here threads of this process, share each layer: the first of two is split by columns, the second by rows. Results
are those of one rank within rounding, with the same bits at one degree. Prints what 14_tensor.c prints."""

import array
import math
import sys

import scaletrain as st

DEVICE = sys.argv[-1] if "--device" in sys.argv else "cpu"  # --device NAME at the end
ROWS, WIDTH, STEPS = 64, 32, 100


def linear(graph: st.Graph, name: str, x: st.Value, inputs: int, outputs: int) -> st.Value:
    with graph.scope(name):
        weight = graph.parameter("weight", (inputs, outputs), init="xavier")
        return x @ weight + graph.parameter("bias", (outputs,), init="zeros")


def train(graph: st.Graph, name: str, tensor: int, data_ranks: int, batch: dict[str, st.Array]) -> tuple[float, str]:
    """Returns the loss, and a digest of all weights and moments."""
    recipe: st.RecipeSettings = {"batch": ROWS // 2, "micro_batches": 2, "lr": 0.01, "weight_decay": 0}
    trainer = st.Trainer(st.Model(graph, seed=1), recipe | {"tensor": tensor, "ranks": tensor * data_ranks, "zero": 1})
    for _ in range(STEPS):
        report = trainer.step(batch)
    print(f"{name:22}  step {report.step}  loss {report.loss:.3f}")
    return report.loss, trainer.digest()


def main() -> bool:
    x = array.array("f", (-3 + 6 * i / (ROWS - 1) for i in range(ROWS)))
    y = array.array("f", map(math.sin, x))
    batch = {name: memoryview(values).cast("B").cast("f", (ROWS, 1)) for name, values in (("x", x), ("y", y))}

    graph = st.Graph(st.Context(device=DEVICE))
    hidden = st.ops.gelu(linear(graph, "first", graph.input("x", "f32", (st.BATCH, 1)), 1, WIDTH))
    for name in ("second", "third"):
        hidden = st.ops.gelu(linear(graph, name, hidden, WIDTH, WIDTH))
    prediction = linear(graph, "fourth", hidden, WIDTH, 1)
    graph.loss(st.ops.mse(prediction, graph.input("y", "f32", (st.BATCH, 1))))

    loss, _ = train(graph, "one rank", 1, 1, batch)
    of_two, shared = train(graph, "two tensor ranks", 2, 1, batch)
    _, beside = train(graph, "and two data ranks", 2, 2, batch)
    alike = shared == beside and abs(of_two - loss) < 1e-3
    print("the same bits at one degree, within rounding of one rank" if alike else "they differ")
    return alike


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
