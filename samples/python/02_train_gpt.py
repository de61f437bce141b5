"""Trains a small GPT on a text file, evaluates it on held-out text, generates text, and saves its weights. Prints the same numbers as
02_train_gpt.c. Usage: 02_train_gpt.py TEXT [WEIGHTS.safetensors] [--device NAME]"""

import sys

import scaletrain as st

DEVICE = sys.argv[-1] if "--device" in sys.argv else "cpu"  # --device NAME at the end
OPTIONS = {"layers": 2, "width": 64, "heads": 2, "context": 32}


def show(report: st.StepReport) -> None:
    if report.step % 20 == 0:
        print(f"step {report.step:3d}  loss {report.loss:.3f}")


def round_trip(context: st.Context, model: st.Model, path: str) -> bool:
    """Weights written to a file and read by another model are equal."""
    copy = st.Model.builtin(context, "gpt", seed=2, **OPTIONS)  # another seed: other weights until the file is read
    model.write_file(path)
    copy.read_file(path)
    name = "block.0.attention.qkv.weight"
    equal = bool(copy.get(name) == model.get(name))
    print(f"weights in {path}: {'read back, equal' if equal else 'DIFFERENT'}")
    return equal


def main(text: str, weights: str = "gpt.safetensors") -> bool:
    with st.Context(device=DEVICE) as context:
        train, validation = st.Data.files(context, text, context=32).split(0.1)  # the last tenth of the text is held out
        model = st.Model.builtin(context, "gpt", seed=1, **OPTIONS)
        trainer = st.Trainer(model, {"batch": 16, "lr": 0.003}, train)
        before = trainer.evaluate(validation)
        trainer.run(100, show)
        after = trainer.evaluate(validation)
        print(f"validation loss {before.loss:.3f}, then {after.loss:.3f} nats a byte")

        made = st.Predictor(model).generate(b"The ", tokens=60)  # tokens are bytes here
        print("The " + "".join(chr(token) if 32 <= token < 127 else " " for token in made))
        return round_trip(context, model, weights) and after.loss < before.loss - 1  # guessing costs 5.5 nats per byte


if __name__ == "__main__":
    words = sys.argv[1:-2] if "--device" in sys.argv else sys.argv[1:]
    if len(words) not in (1, 2):
        sys.exit(f"usage: {sys.argv[0]} TEXT [WEIGHTS.safetensors] [--device NAME]")
    sys.exit(0 if main(*words) else 1)
