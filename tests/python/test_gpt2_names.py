"""Hugging Face's GPT-2 files are read without conversion, and a checkpoint is loaded under their names."""

import math
import pathlib

import numpy
import pytest
from safetensors.numpy import load_file

import scaletrain as st

FIXTURES = pathlib.Path(__file__).parents[1] / "conformance/fixtures/gpt2"


def model_of_the_file(context: st.Context) -> st.Model:
    model = st.Model.builtin(context, "gpt", seed=5, layers=2, width=24, heads=3, context=16, vocabulary=61)
    with open(FIXTURES / "model.safetensors", "rb") as file:
        assert model.read(file, rename=st.gpt2_names()) == (len(model.parameters), (), ())
    return model


def logits_of_gpt2(weights, config, tokens):
    """Computes the formulas of transformers in fp64."""
    w = {name.removeprefix("transformer."): array.astype("f8") for name, array in weights.items()}
    heads, context = config["n_head"], tokens.shape[1]

    def norm(x, name):
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / numpy.sqrt((centred**2).mean(-1, keepdims=True) + config["layer_norm_epsilon"])
        return scaled * w[name + ".weight"] + w[name + ".bias"]

    def product(x, name):
        return x @ w[name + ".weight"] + w[name + ".bias"]

    act = {
        "gelu_new": lambda x: 0.5 * x * (1 + numpy.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        "gelu": lambda x: 0.5 * x * (1 + numpy.vectorize(math.erf)(x / math.sqrt(2))),
        "relu": lambda x: numpy.maximum(x, 0),
    }[config["activation_function"]]
    x = w["wte.weight"][tokens] + w["wpe.weight"][:context]
    for i in range(config["n_layer"]):
        q, k, v = (
            part.reshape(*part.shape[:2], heads, -1).transpose(0, 2, 1, 3)
            for part in numpy.split(product(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn"), 3, -1)
        )
        scores = q @ k.swapaxes(-1, -2)
        if config["scale_attn_weights"]:
            scores /= math.sqrt(q.shape[-1])
        if config["scale_attn_by_inverse_layer_idx"]:
            scores /= i + 1
        scores = numpy.where(numpy.tri(context), scores, -numpy.inf)
        chances = numpy.exp(scores - scores.max(-1, keepdims=True))
        mixed = (chances / chances.sum(-1, keepdims=True)) @ v
        x = x + product(mixed.transpose(0, 2, 1, 3).reshape(x.shape), f"h.{i}.attn.c_proj")
        x = x + product(act(product(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc")), f"h.{i}.mlp.c_proj")
    return norm(x, "ln_f") @ w["wte.weight"].T


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"activation_function": "gelu"},
        {"activation_function": "relu", "layer_norm_epsilon": 0.1},
        {"scale_attn_by_inverse_layer_idx": True},
        {"scale_attn_weights": False},
    ],
)
def test_a_config_of_transformers_is_the_model(context, keys):
    config = {"model_type": "gpt2", "n_layer": 2, "n_embd": 24, "n_head": 3, "n_positions": 16, "vocab_size": 61, "attn_pdrop": 0.0,
              "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "scale_attn_weights": True,
              "scale_attn_by_inverse_layer_idx": False, "task_specific_params": {"text-generation": {"max_length": 50}}, **keys}  # fmt: skip
    answers = load_file(FIXTURES / "answers.safetensors")
    wanted = logits_of_gpt2(load_file(FIXTURES / "model.safetensors"), config, answers["tokens"])
    if not keys:
        assert numpy.abs(wanted - answers["logits"]).max() <= 1e-4, "the formulas are those of transformers"
    model = st.Model.builtin(context, "gpt2", **config)
    with open(FIXTURES / "model.safetensors", "rb") as file:
        model.read(file, rename=st.gpt2_names())
    logits = numpy.empty_like(answers["logits"])
    st.Predictor(model).run({"tokens": answers["tokens"]}, {"logits": logits})
    assert numpy.abs(logits - wanted).max() <= 1e-4


def test_a_checkpoint_is_loaded_under_its_names(context, tmp_path):
    checkpoint = st.Checkpoint(context, tmp_path)
    st.Trainer(model_of_the_file(context), {"batch": 2}).save(checkpoint)
    wanted = load_file(FIXTURES / "model.safetensors")
    found = {name: numpy.empty_like(array) for name, array in wanted.items()}
    theirs = {ours: name for name, ours in st.gpt2_names().items() if name.startswith("transformer.")}
    report = checkpoint.load(found, rename=theirs, names=["transformer.*"])
    assert report.read == len(wanted) and all((found[name] == wanted[name]).all() for name in wanted)
