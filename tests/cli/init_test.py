"""`scaletrain train --init`, and resuming an import: weights alone start a run, and a config.json next to them gives the model."""

import json
import shutil
import struct
import unittest

import numpy

import torch_stub
from command_line import PROGRAM, ROOT, CommandLineTest, run
from plain_safetensors import read_safetensors, write_safetensors

FIXTURE = ROOT / "tests/conformance/fixtures/gpt2/model.safetensors"
CONFIG = {"model_type": "gpt2", "n_layer": 2, "n_embd": 24, "n_head": 3, "n_positions": 16, "n_ctx": 16, "vocab_size": 61, "attn_pdrop": 0.1,
          "activation_function": "gelu", "layer_norm_epsilon": 1e-3}  # fmt: skip
SIZES = ["--layers", 2, "--width", 24, "--heads", 3, "--context", 16, "--activation", "gelu", "--layer-norm-epsilon", "1e-3"]

LLAMAS = ROOT / "tests/equivalence/fixtures"  # make_llama_fixture.py: a Llama's files, and the same weights under our names
LLAMA_SIZES = ["--model", "llama", "--layers", 2, "--width", 32, "--heads", 4, "--kv-heads", 2, "--ffn", 48, "--context", 16,
               "--rope-base", 500, "--rms-norm-epsilon", "1e-3"]  # fmt: skip


class Init(CommandLineTest):
    def setUp(self):
        super().setUp()
        ids = numpy.random.default_rng(1).integers(0, 61, 4000, dtype="u2")
        self.tokens = self.file("tokens.bin", b"STTOKENS" + struct.pack("<IIQQ", 1, 2, 61, len(ids)) + ids.tobytes())
        self.run = ["--data", self.tokens, "--batch", 2, "--threads", 1, "--warmup", 0]
        self.hf = self.folder / "hf"
        self.hf.mkdir()
        shutil.copy(FIXTURE, self.hf)
        self.configure({})

    def configure(self, keys):
        (self.hf / "config.json").write_text(json.dumps(CONFIG | keys))

    def bare(self, tensors, name="bare.safetensors"):
        """A file without a config.json next to it."""
        path = self.folder / name
        (write_safetensors if name.endswith(".safetensors") else torch_stub.save)(path, tensors)
        return path

    def shards(self, weights):
        """A Hugging Face folder with two files of weights."""
        folder = self.folder / "shards"
        folder.mkdir()
        shutil.copy(self.hf / "config.json", folder)
        where = {name: f"model-0000{i % 2 + 1}-of-00002.safetensors" for i, name in enumerate(weights)}
        for shard in set(where.values()):
            write_safetensors(folder / shard, {name: array for name, array in weights.items() if where[name] == shard})
        (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))
        return folder

    def llama(self):
        folder = self.folder / "llama"
        folder.mkdir()
        shutil.copy(LLAMAS / "llama_transformers.safetensors", folder / "model.safetensors")
        shutil.copy(LLAMAS / "llama_transformers.json", folder / "config.json")
        return folder

    def state(self, *arguments, steps=3):
        return self.train(*self.run, "--steps", steps, *arguments)[-1]["state"]

    def refused(self, words, *arguments):
        done = run(*arguments)
        self.assertEqual(done.returncode, 2, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr.splitlines()[-1])

    def imported(self, source, folder="imported", *arguments):
        done = run("checkpoint", "import", source, self.folder / folder, *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_a_folder_of_hugging_face_a_file_and_what_was_imported_begin_the_same_run(self):
        state = self.state("--init", self.hf)
        self.assertRegex(self.output, r"(?m)^init .*hf, and a fresh optimizer$")
        self.assertRegex(self.output, r"(?m)^model .*not taken: attn_pdrop 0.1")
        said = self.imported(self.hf / "model.safetensors", "imported", "--map", "gpt2")
        self.assertIn("attn_pdrop 0.1", said)
        self.assertEqual(self.state("--checkpoint", self.folder / "imported", "--resume"), state)
        self.assertRegex(self.output, r"(?m)^changed .*optimizer state.*only weights$")
        weights = read_safetensors(FIXTURE)
        self.assertEqual(self.state("--init", self.shards(weights)), state)
        self.assertEqual(self.state("--init", self.bare(weights), *SIZES), state)
        self.assertNotEqual(self.state("--init", self.bare(weights), *SIZES[:8]), state, "the config's activation is used")
        for prefix, stripped in (("module._orig_mod.", "_orig_mod., module."), ("model._orig_mod.net.", "_orig_mod., model.net.")):
            wrapped = {f"{prefix}transformer.h.{i}.attn.bias": numpy.tri(16, dtype="u1").reshape(1, 1, 16, 16) for i in range(2)}
            wrapped |= {prefix + name: array for name, array in weights.items()}
            file = self.bare({"state_dict": wrapped, "optimizer_states": [1]}, "bare.ckpt")
            self.assertEqual(self.state("--init", file, *SIZES), state)
            self.assertRegex(self.output, rf"(?m)^names +without {stripped}\nnot taken .*optimizer_states")
            self.assertIn(f"names: without {stripped}\n", self.imported(file, stripped, "--map", "gpt2"))
        other = self.bare({"state_dict": wrapped | {"loss.weight": numpy.ones(1, "f4")}}, "other.ckpt")
        self.refused(["model.net.transformer", "the state_dict() of the network"], "train", *self.run, "--steps", 1, "--init", other, *SIZES)

    def test_a_llama_of_hugging_face_begins_the_run_of_its_weights_under_our_names(self):
        everything = read_safetensors(LLAMAS / "llama_parity.safetensors")
        ours = {name: array for name, array in everything.items() if name.endswith((".weight", ".gamma")) and "gradient/" not in name}
        state = self.state("--init", self.bare(ours), *LLAMA_SIZES)
        self.assertEqual(self.state("--init", self.llama()), state)
        self.assertRegex(self.output, r"(?m)^model +llama: 2 layers, width 32, 4 heads, groups 2, ffn 48, context 16, vocabulary 61; 19,424 ")
        self.imported(self.folder / "llama" / "model.safetensors", "imported", "--map", "llama")
        self.assertEqual(self.state("--checkpoint", self.folder / "imported", "--resume"), state)
        theirs = read_safetensors(LLAMAS / "llama_transformers.safetensors")
        wrapped = {"module._orig_mod." + name: array for name, array in theirs.items()}
        wrapped["module._orig_mod.model.layers.0.self_attn.rotary_emb.inv_freq"] = numpy.ones(4, "f4")
        self.assertEqual(self.state("--init", self.bare({"state_dict": wrapped}, "bare.pt"), *LLAMA_SIZES), state)
        base = {name.removeprefix("model."): array for name, array in theirs.items()}
        self.assertEqual(self.state("--init", self.bare(base), *LLAMA_SIZES), state)

        tied = {name: array for name, array in ours.items() if name != "head.weight"}
        state = self.state("--init", self.bare(tied), *LLAMA_SIZES, "--tied-embedding")
        copied = theirs | {"lm_head.weight": theirs["model.embed_tokens.weight"]}
        self.assertEqual(self.state("--init", self.bare(copied), *LLAMA_SIZES, "--tied-embedding"), state)

    def test_a_llama_that_does_not_fit_is_refused_and_its_context_is_the_runs(self):
        hf = self.llama()
        train = ["train", *self.run, "--steps", 1, "--init", hf]
        self.state("--init", hf, "--context", 8)
        self.assertIn("context 8, ", self.output)
        self.refused(["--kv-heads is 4", "num_key_value_heads 2", "leave --kv-heads out"], *train, "--kv-heads", 4)
        self.refused(["--rope-base is 100", "rope_theta 500.0"], *train, "--rope-base", 100)
        self.refused(["--model is gpt", "is llama"], *train, "--model", "gpt")
        theirs = read_safetensors(hf / "model.safetensors")
        weights = {name: array for name, array in theirs.items() if "layers.1.self_attn.v_proj" not in name}
        write_safetensors(hf / "model.safetensors", weights)
        self.refused(["layers.1.self_attn.", "_proj.weight, which the model does not have"], *train)
        write_safetensors(hf / "model.safetensors", theirs | {"model.layers.0.self_attn.k_proj.weight": numpy.ones((16, 32), "f8")})
        self.refused(["layers.0.self_attn.k_proj.weight cannot be joined with", "q_proj"], *train)
        write_safetensors(hf / "model.safetensors", theirs)
        config = json.loads((hf / "config.json").read_text())
        for key, value in (("attention_bias", True), ("rope_scaling", {"rope_type": "yarn"}), ("model_type", "mistral")):
            (hf / "config.json").write_text(json.dumps(config | {key: value}))
            self.refused(["llama/config.json", "llama-hf", key], *train)
            self.refused(["llama/config.json", "llama-hf", key], "checkpoint", "import", hf / "model.safetensors", self.folder / "x", "--map", "llama")

    def test_ranks_with_pieces_of_the_weights_read_them_too(self):
        split = ["--micro-batches", 2, "--batch", 1, "--init", self.hf]
        for precision in ("fp32", "bf16"):
            state = self.state(*split, "--precision", precision)
            self.assertEqual(self.state(*split, "--precision", precision, "--ranks", 2, "--zero", 3), state)
            log = self.folder / "ranks.jsonl"
            done = run("launch", "-n", 2, "--", PROGRAM, "train", *self.run, *split,
                       "--steps", 3, "--precision", precision, "--zero", 3, "--log", log)  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(log.read_text().splitlines()[-1])["state"], state)

    def test_a_run_that_can_be_resumed_reads_nothing(self):
        checkpoints = ["--checkpoint", self.folder / "run", "--resume", "--init", self.hf, "--lr-steps", 5]
        self.state(*checkpoints)
        straight = self.state("--init", self.hf, "--lr-steps", 5, steps=5)
        shutil.rmtree(self.hf)
        self.assertEqual(self.state(*checkpoints, steps=5), straight)
        self.assertNotRegex(self.output, r"(?m)^init ")
        # Our checkpoints are weights like any other, and record their model.
        self.state("--init", self.folder / "run")
        self.assertRegex(self.output, r"(?m)^init .*run, and a fresh optimizer$")
        self.refused(["--heads is 2", "n_head 3"], "train", *self.run, "--steps", 9, *checkpoints[:3], "--heads", 2)

    def test_what_does_not_fit_is_named_with_both_shapes_and_the_way_out(self):
        weights = read_safetensors(FIXTURE)
        train = ["train", *self.run, "--steps", 1, "--init"]
        self.refused(["no such file or folder"], *train, self.folder / "nosuch")
        self.refused(["block.0.", "[72]", "[384]", "--width", "config.json"], *train, self.bare(weights))
        self.imported(self.bare(weights), "bare", "--map", "gpt2")
        self.refused(["[24], the model's is [128]; make the model with the sizes", "names; train gives", "--width"], *train, self.folder / "bare")
        self.refused(["block.1.", "does not have", "--layers"], *train, self.bare(weights), *SIZES[2:], "--layers", 1)
        self.refused(["block.2.", "12 of the model's 40", "--layers"], *train, self.bare(weights), *SIZES[2:], "--layers", 3)
        self.refused(["--heads is 4", "config.json", "n_head 3", "leave --heads out"], *train, self.hf, "--heads", 4)
        self.refused(["--context is 8", "n_positions 16"], *train, self.hf, "--context", 8)
        for keys, words in [
            ({"n_inner": 100}, ["n_inner 100", "96"]),
            ({"model_type": "llama"}, ["model_type", "llama"]),
            ({"activation_function": "quick_gelu"}, ["activation_function", "quick_gelu"]),
            ({"tie_word_embeddings": False}, ["tie_word_embeddings false"]),
        ]:
            self.configure(keys)
            self.refused(["hf/config.json", *words], *train, self.hf)
            self.refused(["hf/config.json", *words], "checkpoint", "import", self.hf / "model.safetensors", self.folder / "x", "--map", "gpt2")
        (self.hf / "config.json").write_text("[")
        self.refused(["hf/config.json", "JSON"], *train, self.hf)
        (self.hf / "config.json").write_text('{"x":' + "[" * 100000 + "]" * 100000 + "}")
        self.refused(["hf/config.json", "deeper than 64"], *train, self.hf)
        self.assertFalse((self.folder / "x").exists())

    def test_nan_is_named_by_import_and_init(self):
        weights = read_safetensors(FIXTURE)
        name = "transformer.h.1.mlp.c_fc.bias"
        weights[name] = numpy.where(numpy.arange(96) == 5, numpy.nan, weights[name]).astype("f4")
        for path in (self.bare(weights), self.bare(weights, "bare.pt")):
            words = ["block.1.mlp.expand.bias", "NaN", "element 5"]
            self.refused(words, "train", *self.run, "--steps", 1, "--init", path, *SIZES)
            self.refused(words, "checkpoint", "import", path, self.folder / "x", "--map", "gpt2")
        self.assertFalse((self.folder / "x").exists())
        transposed = numpy.arange(6, dtype="f8").reshape(2, 3).T
        transposed[1, 1] = numpy.nan
        self.refused(["w", "element 3"], "checkpoint", "import", self.bare({"w": transposed}, "t.pt"), self.folder / "x")


if __name__ == "__main__":
    unittest.main()
