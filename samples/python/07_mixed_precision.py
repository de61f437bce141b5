"""Trains the same small GPT in fp32, bf16 and fp16, from the same weights on the same text, and shows the losses side by side. In fp16 the
loss is scaled. The scale starts too high, so the first steps are skipped until it fits. Prints the same numbers as 07_mixed_precision.c.
Usage: 07_mixed_precision.py TEXT [--device NAME]"""

import sys

import scaletrain as st

DEVICE = sys.argv[-1] if "--device" in sys.argv else "cpu"  # --device NAME at the end
STEPS, EVERY = 60, 10


class Run:
    def __init__(self, precision: str) -> None:
        self.precision = precision
        self.losses: list[float] = []
        self.skipped, self.scale, self.validation = 0, 0.0, 0.0

    def record(self, report: st.StepReport) -> None:
        if report.step % EVERY == 0:
            self.losses.append(report.loss)
        self.skipped += report.skipped
        self.scale = report.loss_scale

    def train(self, context: st.Context, data: st.Data, held_out: st.Data) -> None:
        recipe = st.Recipe(precision=self.precision, batch=8, lr=0.001)
        if self.precision == "fp16":
            recipe["loss_scale_initial"] = 4194304
        model = st.Model.builtin(context, "gpt", seed=1, layers=2, width=64, heads=2, context=32)
        with st.Trainer(model, recipe, data) as trainer:  # weights, moments and gradients are fp32 in all three runs
            trainer.run(STEPS, self.record)
            self.validation = trainer.evaluate(held_out).loss


def main(text: str) -> bool:
    context = st.Context(device=DEVICE)
    training, held_out = st.Data.files(context, text, context=32).split(0.1)
    runs = [Run(precision) for precision in ("fp32", "bf16", "fp16")]
    for run in runs:
        run.train(context, training, held_out)

    def line(name: object, cells: list[str]) -> None:
        print(f"{name!s:<12} " + " ".join(f"{cell:>8}" for cell in cells))

    line("step", [run.precision for run in runs])
    for k in range(STEPS // EVERY):
        line((k + 1) * EVERY, [f"{run.losses[k]:.4f}" for run in runs])
    line("validation", [f"{run.validation:.4f}" for run in runs])
    line("loss scale", [f"{run.scale:.0f}" for run in runs])
    line("skipped", [str(run.skipped) for run in runs])
    # Guessing costs 5.5 nats per byte. The steps that fp16 skips at the start cost it a little.
    close = all(run.validation < 4.5 and abs(run.validation / runs[0].validation - 1) < 0.05 for run in runs)
    return close and [run.skipped > 0 for run in runs] == [False, False, True]


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} TEXT [--device NAME]")
    sys.exit(0 if main(sys.argv[1]) else 1)
