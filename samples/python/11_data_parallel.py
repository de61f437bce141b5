"""Data parallelism: the micro-batches of a step are shared among ranks, here threads of this process. One recipe key sets their number;
losses and weights are bitwise equal for any number of ranks. Prints the same numbers as 11_data_parallel.c."""

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


def train(graph: st.Graph, ranks: int, batch: dict[str, st.Array]) -> str:
    """Trains on this number of ranks. Returns a digest of all weights and moments."""
    recipe: st.RecipeSettings = {"batch": 8, "micro_batches": 8, "lr": 0.01, "weight_decay": 0, "ranks": ranks}
    trainer = st.Trainer(st.Model(graph, seed=1), recipe)
    for _ in range(STEPS):
        report = trainer.step(batch)  # the batch has the rows of all ranks
    print(f"{ranks} rank{' ' if ranks == 1 else 's'}  step {report.step}  loss {report.loss:.5f}")
    return trainer.digest()


def main() -> bool:
    x = array.array("f", (-3 + 6 * i / (ROWS - 1) for i in range(ROWS)))
    y = array.array("f", map(math.sin, x))
    batch = {name: memoryview(values).cast("B").cast("f", (ROWS, 1)) for name, values in (("x", x), ("y", y))}

    graph = st.Graph(st.Context(device=DEVICE))
    hidden = st.ops.gelu(linear(graph, "first", graph.input("x", "f32", (st.BATCH, 1)), 1, WIDTH))
    prediction = linear(graph, "second", hidden, WIDTH, 1)
    graph.loss(st.ops.mse(prediction, graph.input("y", "f32", (st.BATCH, 1))))

    states = [train(graph, ranks, batch) for ranks in (1, 2, 3, 8)]
    alike = len(set(states)) == 1
    print("all have the same bits" if alike else "they differ")
    return alike


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
