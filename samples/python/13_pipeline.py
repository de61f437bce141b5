"""Pipeline stages: layers in two stages, here threads of this process, and micro-batches that pass through them. With one micro-batch the
split is naive model parallelism: each stage waits half of the time. The bits are those of one stage. Prints what 13_pipeline.c prints."""

import array
import math
import sys

import scaletrain as st

DEVICE = sys.argv[-1] if "--device" in sys.argv else "cpu"  # --device NAME at the end
ROWS, WIDTH, STEPS = 64, 32, 100


def linear(graph: st.Graph, name: str, x: st.Value, inputs: int, outputs: int) -> st.Value:
    """A layer in an outermost scope: a stage may begin with it."""
    with graph.scope(name):
        weight = graph.parameter("weight", (inputs, outputs), init="xavier")
        return x @ weight + graph.parameter("bias", (outputs,), init="zeros")


def train(graph: st.Graph, name: str, stages: int, schedule: str, micro_batches: int, batch: dict[str, st.Array]) -> str:
    """Returns a digest of all weights and moments."""
    recipe: st.RecipeSettings = {"batch": ROWS // micro_batches, "micro_batches": micro_batches, "lr": 0.01, "weight_decay": 0}
    trainer = st.Trainer(st.Model(graph, seed=1), recipe | {"stages": stages, "schedule": schedule})
    for _ in range(STEPS):
        report = trainer.step(batch)  # the host passes the rows once
    print(f"{name:11}  {micro_batches} micro-batches  step {report.step}  loss {report.loss:.5f}")
    return trainer.digest()


def main(schedule: str) -> bool:
    x = array.array("f", (-3 + 6 * i / (ROWS - 1) for i in range(ROWS)))
    y = array.array("f", map(math.sin, x))
    batch = {name: memoryview(values).cast("B").cast("f", (ROWS, 1)) for name, values in (("x", x), ("y", y))}

    graph = st.Graph(st.Context(device=DEVICE))
    hidden = st.ops.gelu(linear(graph, "first", graph.input("x", "f32", (st.BATCH, 1)), 1, WIDTH))
    for name in ("second", "third"):
        hidden = st.ops.gelu(linear(graph, name, hidden, WIDTH, WIDTH))
    prediction = linear(graph, "fourth", hidden, WIDTH, 1)
    graph.loss(st.ops.mse(prediction, graph.input("y", "f32", (st.BATCH, 1))))

    naive = {train(graph, "one stage", 1, "1f1b", 1, batch), train(graph, "naive split", 2, "1f1b", 1, batch)}
    piped = {train(graph, "one stage", 1, "1f1b", 8, batch), train(graph, "1f1b", 2, "1f1b", 8, batch)}
    piped.add(train(graph, schedule, 2, schedule, 8, batch))
    alike = len(naive) == 1 and len(piped) == 1
    print("the same bits with the same micro-batches" if alike else "they differ")
    return alike


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1] if sys.argv[1:2] not in ([], ["--device"]) else "zb-v") else 1)  # or gpipe, interleaved, zb-h1
