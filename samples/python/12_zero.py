"""ZeRO between processes: each rank keeps only its shards of parameters, gradients and optimizer state. The results are bitwise those of one
rank. All ranks save one checkpoint together, each its own shards, and read a whole weight; a single process resumes from the checkpoint. Calls
that end in _collective are made by all ranks. Prints the same numbers as 12_zero.c.
Run: scaletrain launch -n 2 -- python 12_zero.py FOLDER"""

import sys

import numpy
from numpy import float32

import scaletrain as st

DEVICE = sys.argv[-1] if "--device" in sys.argv else "cpu"  # --device NAME at the end
ROWS, BATCH, STEPS = 64, 8, 50


def make_model(context: st.Context) -> st.Model:
    """A small built-in network that will learn y = sin x."""
    return st.Model.builtin(context, "mlp", seed=1, inputs=1, hidden=[64, 64], outputs=1)


def recipe(zero: int) -> st.RecipeSettings:
    return {"batch": BATCH, "micro_batches": ROWS // BATCH, "lr": 0.01, "weight_decay": 0, "zero": zero}


def train(trainer: st.Trainer, rank: int, size: int) -> st.StepReport:
    """Trains on the rows of this rank: every size-th micro-batch of a step."""
    rows = numpy.array([i for i in range(ROWS) if i // BATCH % size == rank], dtype=float32)
    x = (float32(-3) + float32(6) * rows / float32(ROWS - 1)).reshape(-1, 1)
    batch = {"x": x, "y": numpy.sin(x.astype(float)).astype(float32)}
    for _ in range(STEPS):
        report = trainer.step(batch)
    return report


def resume_alone(context: st.Context, checkpoint: st.Checkpoint) -> str:
    """Continues from the checkpoint on a single rank, which holds the whole state."""
    trainer = st.Trainer(make_model(context), recipe(0))
    trainer.resume(checkpoint)
    report = train(trainer, 0, 1)
    print(f"1 rank   step {report.step}  loss {report.loss:.5f}")
    return trainer.digest()


def main(folder: str) -> bool:
    context = st.Context(device=DEVICE)
    ranks = st.Communicator.env(context)  # the rank that scaletrain launch, torchrun, mpirun or srun assigned
    own = ranks.duplicate()  # for this program's calls: `ranks` is the trainer's
    half = ranks.split(2 * ranks.rank // ranks.size, allow_single=True)  # the ranks of a stage, if there were two stages
    assert half.size <= ranks.size
    model = make_model(context)
    trainer = st.Trainer(model, recipe(3), communicator=ranks)

    if ranks.rank == 0:
        checkpoint = st.Checkpoint(context, folder)
    own.barrier(name="the folder is there")
    if ranks.rank != 0:
        checkpoint = st.Checkpoint(context, folder, read_only=True)  # rank 0 locks the folder; the others write to it, too

    train(trainer, ranks.rank, ranks.size)
    trainer.save_collective(checkpoint)
    report = train(trainer, ranks.rank, ranks.size)
    state = trainer.digest_collective()
    weight = numpy.asarray(model.get_collective("layer.0.weight"))  # get() would raise WrongState: this rank has only its shard
    if ranks.rank != 0:
        return True

    print(f"{ranks.size} ranks  step {report.step}  loss {report.loss:.5f}")
    print(f"weights  {weight[0, 0]:.4f} {weight[0, 1]:.4f} .. {weight[0, 63]:.4f}")
    alike = resume_alone(context, checkpoint) == state
    print("the same bits" if alike else "they differ")
    return alike


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1] if sys.argv[1:2] not in ([], ["--device"]) else "zero_run") else 1)
