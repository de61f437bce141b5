"""Hugging Face's GPT-2: its files are read as they are, and a checkpoint is loaded under its names."""

import pathlib

import numpy
from safetensors.numpy import load_file

import scaletrain as st

FIXTURES = pathlib.Path(__file__).parents[1] / "conformance/fixtures/gpt2"


def model_of_the_file(context: st.Context) -> st.Model:
    model = st.Model.builtin(context, "gpt", seed=5, layers=2, width=24, heads=3, context=16, vocabulary=61)
    with open(FIXTURES / "model.safetensors", "rb") as file:
        assert model.read(file, rename=st.gpt2_names()) == (len(model.parameters), (), ())
    return model


def test_a_file_of_transformers_gives_its_logits(context):
    answers = load_file(FIXTURES / "answers.safetensors")
    logits = numpy.empty_like(answers["logits"])
    st.Predictor(model_of_the_file(context)).run({"tokens": answers["tokens"]}, {"logits": logits})
    assert numpy.abs(logits - answers["logits"]).max() <= 1e-4 and numpy.ptp(logits) > 1


def test_a_checkpoint_is_loaded_under_its_names(context, tmp_path):
    checkpoint = st.Checkpoint(context, tmp_path)
    st.Trainer(model_of_the_file(context), {"batch": 2}).save(checkpoint)
    wanted = load_file(FIXTURES / "model.safetensors")
    found = {name: numpy.empty_like(array) for name, array in wanted.items()}
    theirs = {ours: name for name, ours in st.gpt2_names().items() if name.startswith("transformer.")}
    report = checkpoint.load(found, rename=theirs, names=["transformer.*"])
    assert report.read == len(wanted) and all((found[name] == wanted[name]).all() for name in wanted)
