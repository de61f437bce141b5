"""ZeRO between processes: each rank keeps only its pieces of parameters, gradients and optimizer state; the bits are those of one rank.
All ranks save one checkpoint together, each its own pieces; one process alone goes on from it. The same numbers as 12_zero.c.
Run: scaletrain launch -n 2 -- python 12_zero.py FOLDER"""

import sys

import numpy
from numpy import float32

import scaletrain as st

ROWS, BATCH, STEPS = 64, 8, 50


def make_model(context: st.Context) -> st.Model:
    """y = sin x by a small network that the library knows."""
    return st.Model.builtin(context, "mlp", seed=1, inputs=1, hidden=[64, 64], outputs=1)


def recipe(zero: int) -> st.RecipeSettings:
    return {"batch": BATCH, "micro_batches": ROWS // BATCH, "lr": 0.01, "weight_decay": 0, "zero": zero}


def train(trainer: st.Trainer, rank: int, size: int) -> st.StepReport:
    """On the rows of this rank: of the micro-batches of a step every size-th."""
    rows = numpy.array([i for i in range(ROWS) if i // BATCH % size == rank], dtype=float32)
    x = (float32(-3) + float32(6) * rows / float32(ROWS - 1)).reshape(-1, 1)
    batch = {"x": x, "y": numpy.sin(x.astype(float)).astype(float32)}
    for _ in range(STEPS):
        report = trainer.step(batch)
    return report


def go_on_alone(context: st.Context, checkpoint: st.Checkpoint) -> str:
    """From the checkpoint on by one rank, which has all of the state."""
    trainer = st.Trainer(make_model(context), recipe(0))
    trainer.resume(checkpoint)
    report = train(trainer, 0, 1)
    print(f"1 rank   step {report.step}  loss {report.loss:.5f}")
    return trainer.digest()


def main(folder: str) -> bool:
    context = st.Context()
    ranks = st.Communicator.env(context)  # as scaletrain launch, torchrun, mpirun or srun started us
    trainer = st.Trainer(make_model(context), recipe(3), communicator=ranks)

    if ranks.rank == 0:
        checkpoint = st.Checkpoint(context, folder)
    ranks.barrier(name="the folder is there")
    if ranks.rank != 0:
        checkpoint = st.Checkpoint(context, folder, read_only=True)  # rank 0 has the folder; the others write beside it

    train(trainer, ranks.rank, ranks.size)
    trainer.save(checkpoint)  # by all ranks
    report = train(trainer, ranks.rank, ranks.size)
    state = trainer.digest()  # by all ranks, too: each has pieces
    if ranks.rank != 0:
        return True

    print(f"{ranks.size} ranks  step {report.step}  loss {report.loss:.5f}")
    alike = go_on_alone(context, checkpoint) == state
    print("the same bits" if alike else "they differ")
    return alike


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1] if len(sys.argv) > 1 else "zero_run") else 1)
