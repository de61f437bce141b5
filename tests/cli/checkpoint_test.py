"""`scaletrain checkpoint`: inspects, verifies, reshards and hashes checkpoints, and converts them to safetensors and back."""

import json
import os
import struct
import unittest

import numpy

import torch_stub
from checkpoint_commands import CheckpointTest
from command_line import ROOT, TINY, run
from plain_safetensors import read_safetensors, write_safetensors

LLAMAS = ROOT / "tests/equivalence/fixtures"  # make_llama_fixture.py: a Llama's files, and the same weights under our names
GPT2 = ROOT / "tests/conformance/fixtures/gpt2/model.safetensors"


class Looks(CheckpointTest):
    def test_inspect_names_what_there_is(self):
        folder = self.imported("run", None, "--step", 12)
        manifest = json.loads(self.done("inspect", folder, "--json"))
        self.assertEqual((manifest["checkpoint"], manifest["step"]), ("step-00000012", 12))
        self.assertEqual({t["name"]: (t["dtype"], t["shape"]) for t in manifest["tensors"]},
                         {"a": ("F32", [300, 1000]), "b.scalar": ("I64", []), "c.empty": ("F16", [0, 4]), "d": ("U8", [77])})
        self.assertEqual(manifest["metadata"], {"imported_from": "source.safetensors", "epoch": "3"})
        table = self.done("inspect", folder)
        for words in ("step-00000012", "imported_from: source.safetensors", "F32        1,200,000  [300,1000]", "4 host tensors, 1,200,085 bytes"):
            self.assertIn(words, table)
        self.assertEqual(self.done("inspect", folder / "step-00000012"), table)

    def test_names_that_would_steer_a_terminal_do_not(self):
        folder = self.imported("run", {"\x1b[2Jwhite": numpy.zeros(3, "f4")})
        self.assertIn("?[2Jwhite", self.done("inspect", folder))

    def test_verify_and_hash_of_a_folder(self):
        folder = self.imported("run", None, "--step", 1)
        self.imported("run", {"a": numpy.ones(5, "f4")}, "--step", 2)
        self.assertRegex(self.done("verify", folder), r"\Astep-00000002: whole, [1-9]\S+ bytes\nstep-00000001: whole, [1-9]\S+ bytes\n\Z")
        newest, older = self.done("hash", folder), self.done("hash", folder / "step-00000001")
        self.assertRegex(newest, r"\A[0-9a-f]{32}\n\Z")
        self.assertNotEqual(newest, older)

        (file,) = (folder / "step-00000002").glob("*.safetensors")
        data = bytearray(file.read_bytes())
        data[-3] ^= 4
        file.write_bytes(data)
        done = self.refused(3, ["1 of 2", "not whole"], "verify", folder)
        self.assertRegex(done.stdout, rf"step-00000002: .*{file.name}.*\bblock 0")
        self.assertRegex(done.stdout, r"step-00000001: whole")
        problem = json.loads(run("checkpoint", "verify", folder, "--json").stdout)["checkpoints"][0]["problems"][0]
        self.assertEqual((problem["tensor"], problem["block"]), ("a", 0))
        # Reading commands fall back to the previous checkpoint and report it.
        done = run("checkpoint", "hash", folder)
        self.assertEqual((done.returncode, done.stdout), (0, older))
        self.assertIn("skipped step-00000002", done.stderr)
        self.refused(3, [file.name, "block 0"], "hash", folder / "step-00000002")
        done = run("checkpoint", "reshard", folder, self.path("cut"), "--shards", 2)
        self.assertEqual(done.returncode, 0)
        self.assertIn("skipped step-00000002", done.stderr)
        self.assertEqual(self.done("hash", self.path("cut")), older)
        os.truncate(folder / "step-00000002" / "manifest.json", 100)
        self.refused(3, ["manifest.json", "cut short"], "inspect", folder / "step-00000002")

    def test_verify_goes_on_behind_files_that_are_missing_or_cut(self):
        folder = self.path("run")
        for step in (1, 2, 3):
            self.imported("run", None, "--step", step)
        (folder / "step-00000003" / "tensors.safetensors").unlink()
        os.truncate(folder / "step-00000002" / "tensors.safetensors", 100)
        self.assertRegex(self.refused(3, ["2 of 3"], "verify", folder).stdout,
                         r"\Astep-00000003: .*is missing.*\nstep-00000002: .*bytes.*\nstep-00000001: whole, .*\n\Z")

    def test_reshard_keeps_the_hash(self):
        folder = self.imported()
        for shards in (3, 8, 0):
            there = self.path(f"cut{shards}")
            self.done("reshard", folder, there, "--shards", shards)
            self.assertEqual(self.done("hash", there), self.done("hash", folder))
            self.assertIn("whole", self.done("verify", there))
            pieces = {t["name"]: len(t["pieces"]) for t in json.loads(self.done("inspect", there, "--json"))["tensors"]}
            self.assertEqual(pieces["a"], max(shards, 1))
        self.refused(2, [str(folder)], "reshard", folder, folder, "--shards", 2)


class BadRequests(CheckpointTest):
    def test_are_named(self):
        folder = self.imported()
        out = self.path("out.safetensors")
        for words, arguments in [
            (["no command given", "inspect"], []),
            (["unknown command inspekt", "export"], ["inspekt", folder]),
            (["name a run's folder"], ["hash"]),
            (["name the file"], ["export", folder]),
            (["unexpected argument", "more"], ["verify", folder, "more"]),
            (["nowhere"], ["inspect", self.path("nowhere")]),
            (["no checkpoint"], ["inspect", self.folder]),
            (["is not a folder"], ["verify", GPT2]),
            (["is inside a checkpoint"], ["export", folder, next(folder.glob("step-*")) / "tensors.safetensors"]),
            (["--shards", "reshard"], ["hash", folder, "--shards", 2]),
            (["--shards", "-1"], ["reshard", folder, self.path("x"), "--shards", -1]),
            (["--shards", "whole number"], ["reshard", folder, self.path("x"), "--shards", "two"]),
            (["--format", "onnx"], ["export", folder, out, "--format", "onnx"]),
            (["--map", "bert", "gpt2"], ["export", folder, out, "--map", "bert"]),
            (["GPT-2 has no weight"], ["export", folder, out, "--map", "gpt2"]),
            (["Llama has no weight"], ["export", folder, out, "--map", "llama"]),
            (["--map llama", "leave --format out"], ["export", folder, out, "--map", "llama", "--format", "torch"]),
            (["--everything and --map exclude each other"], ["export", folder, out, "--map", "llama", "--everything"]),
            (["has no embed_tokens.weight"], ["import", GPT2, self.path("x"), "--map", "llama"]),
            (["--json"], ["hash", folder, "--json"]),
            (["--step", "-2"], ["import", GPT2, self.path("x"), "--step", -2]),
            (["no/such"], ["import", self.path("no/such"), self.path("x")]),
            (["neither model.safetensors nor"], ["import", self.folder, self.path("x")]),
            (["unknown option --josn", "--json"], ["inspect", folder, "--josn"]),
        ]:
            with self.subTest(arguments):
                self.refused(2, words, *arguments)
        self.assertFalse(out.exists())
        self.assertEqual([p.name for p in self.folder.iterdir() if "out" in p.name], [])

    def test_files_that_are_none_or_hostile(self):
        good = GPT2.read_bytes()
        text = b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
        for words, data in [
            (["is empty"], b""),
            (["too few for a safetensors file"], b"text"),
            (["the tensors take"], good[:-1]),
            (["at byte 54: unexpected text after the end"], struct.pack("<Q", len(text) + 1) + text + b"\0" + b"1234"),
            (["a\\u0000b", "NUL in its name"], struct.pack("<Q", len(text) + 7) + text.replace(b'"a"', b'"a\\u0000b"') + b"1234"),
        ]:
            with self.subTest(words):
                self.refused(2, words, "import", self.file("bad.safetensors", data), self.path("x"))
        self.assertFalse(self.path("x").exists(), "a bad file creates nothing")


class Strangers(CheckpointTest):
    """Foreign objects in place of a file or a folder are named, and nothing blocks on them."""

    def training(self, folder):
        return run("train", "--data", self.text, *TINY, "--steps", 2, "--checkpoint", folder)

    def test_in_place_of_a_runs_lock(self):
        folder = self.path("run")
        folder.mkdir()
        os.mkfifo(folder / "lock")
        refusal = self.refused(2, [f"{folder}/lock", "a pipe", "remove"], "import", GPT2, folder).stderr
        done = self.training(folder)
        self.assertEqual((done.returncode, done.stderr), (2, refusal))
        self.assertEqual([path.name for path in folder.iterdir()], ["lock"])

    def test_in_place_of_a_runs_folder(self):
        folder = self.path("run")
        folder.symlink_to("nowhere")
        words = [str(folder), "a broken link to nowhere"]
        refusal = self.refused(2, words, "import", GPT2, folder).stderr
        done = self.training(folder)
        self.assertEqual((done.returncode, done.stderr), (2, refusal))
        self.refused(2, words, "verify", folder)
        self.refused(2, words, "reshard", self.imported("other"), folder)

    def test_in_place_of_a_checkpoints_files(self):
        folder = self.imported("run", None, "--step", 1)
        older = self.done("hash", folder)
        self.imported("run", {"a": numpy.ones(5, "f4")}, "--step", 2)
        for name in ("manifest.json", "tensors.safetensors"):
            with self.subTest(name):
                file, kept = folder / "step-00000002" / name, self.path("kept " + name)
                file.rename(kept)
                os.mkfifo(file)
                what = rf"{name}.* a pipe"
                self.assertRegex(self.refused(3, ["1 of 2"], "verify", folder).stdout, rf"step-00000002: .*{what}.*put the file back")
                done = run("checkpoint", "hash", folder)
                self.assertEqual((done.returncode, done.stdout), (0, older))
                self.assertRegex(done.stderr, rf"skipped step-00000002: .*{what}")
                self.refused(3, [name, "a pipe"], "hash", folder / "step-00000002")
                kept.rename(file)


class Safetensors(CheckpointTest):
    def test_what_is_imported_is_exported(self):
        folder = self.imported()
        self.done("export", folder, self.path("out.safetensors"), "--everything")
        self.same(read_safetensors(self.path("out.safetensors")), self.some_tensors())

    def test_gpt2_of_hugging_face_comes_and_goes(self):
        self.done("import", GPT2, self.path("run"), "--map", "gpt2")
        self.done("export", self.path("run"), self.path("ours.safetensors"))
        ours, theirs = read_safetensors(self.path("ours.safetensors")), read_safetensors(GPT2)
        self.assertEqual(len(ours), len(theirs))
        self.assertEqual(ours["block.1.mlp.expand.weight"].tobytes(), theirs["transformer.h.1.mlp.c_fc.weight"].tobytes())
        self.done("export", self.path("run"), self.path("theirs.safetensors"), "--map", "gpt2")
        self.same(read_safetensors(self.path("theirs.safetensors")), theirs)
        self.assertIn(b'"format":"pt"', self.path("theirs.safetensors").read_bytes()[:100])

    def test_gpt2_of_old_files_has_masks_and_a_tied_head(self):
        theirs = read_safetensors(GPT2)
        old = {name.removeprefix("transformer."): array for name, array in theirs.items()}
        old |= {"h.0.attn.bias": numpy.ones((1, 1, 4, 4), "f4"), "h.0.attn.masked_bias": numpy.array(-1e4, "f4"), "lm_head.weight": old["wte.weight"]}
        write_safetensors(self.path("old.safetensors"), old)
        self.done("import", self.path("old.safetensors"), self.path("run"), "--map", "gpt2")
        self.done("export", self.path("run"), self.path("new.safetensors"), "--map", "gpt2")
        self.same(read_safetensors(self.path("new.safetensors")), theirs)
        write_safetensors(self.path("untied.safetensors"), old | {"lm_head.weight": old["wte.weight"] + 1})
        self.refused(2, ["lm_head.weight", "differs from wte.weight"], "import", self.path("untied.safetensors"), self.path("x"), "--map", "gpt2")

    def test_llama_of_hugging_face_comes_and_goes(self):
        theirs = read_safetensors(LLAMAS / "llama_transformers.safetensors")
        ours = read_safetensors(LLAMAS / "llama_parity.safetensors")
        for kind in ("f4", "f2"):
            with self.subTest(kind):
                run, there, here = self.path(f"run {kind}"), self.path("there.safetensors"), self.path("here.safetensors")
                typed = {name: array.astype(kind) for name, array in theirs.items()}
                write_safetensors(there, typed)
                self.done("import", there, run, "--map", "llama")
                self.done("export", run, here)
                imported = read_safetensors(here)
                self.same(imported, {name: ours[name].astype(kind) for name in imported})
                self.assertLess(ours["block.0.attention.qkv.weight"].shape[1], 3 * 32, "keys have fewer heads than queries")
                self.done("export", run, here, "--map", "llama")
                self.same(read_safetensors(here), typed)
                self.assertIn(b'"format":"pt"', here.read_bytes()[:100])

    def test_a_run_of_llama_comes_back(self):
        sizes = ["--layers", 1, "--width", 32, "--heads", 4, "--kv-heads", 2, "--context", 8, "--threads", 1]
        for tied in ([], ["--tied-embedding"]):
            folder, theirs = self.path(f"run{len(tied)}"), self.path("theirs.safetensors")
            self.train("--data", self.text, "--model", "llama", *sizes, *tied, "--steps", 2, "--checkpoint", folder)
            self.done("export", folder, theirs, "--map", "llama")
            weights = read_safetensors(theirs)
            self.assertEqual("lm_head.weight" in weights, not tied)
            self.assertEqual(weights["model.layers.0.self_attn.k_proj.weight"].shape, (16, 32))
            back = self.path(f"back{len(tied)}")
            self.done("import", theirs, back, "--map", "llama")
            exported = [self.path("before.safetensors"), self.path("after.safetensors")]
            for source, file in zip((folder, back), exported):
                self.done("export", source, file)
            self.same(*map(read_safetensors, exported))

    def test_llama_of_other_files(self):
        theirs = read_safetensors(LLAMAS / "llama_transformers.safetensors")
        old, run, out = self.path("old.safetensors"), self.path("run"), self.path("out.safetensors")
        tied = theirs | {"lm_head.weight": theirs["model.embed_tokens.weight"], "model.layers.0.self_attn.rotary_emb.inv_freq": numpy.ones(4, "f4")}
        write_safetensors(old, {name.removeprefix("model."): array for name, array in tied.items()})
        self.done("import", old, run, "--map", "llama")
        self.done("export", run, out, "--map", "llama")
        self.same(read_safetensors(out), {name: array for name, array in theirs.items() if name != "lm_head.weight"})
        torch_stub.save(self.path("run.pt"), {"model": {"module." + name: array for name, array in theirs.items()}, "optimizer": {"state": {}}})
        said = self.done("import", self.path("run.pt"), self.path("torch"), "--map", "llama")
        self.assertIn("names: without module.\nnot taken: optimizer\n", said)
        self.done("export", self.path("torch"), out, "--map", "llama")
        self.same(read_safetensors(out), theirs)

        key = "model.layers.1.self_attn.k_proj.weight"
        for words, weights in [
            (["layers.1.self_attn.", "without the other two of q_proj, k_proj and v_proj"], {name: theirs[name] for name in theirs if name != key}),
            (["cannot be joined", "k_proj"], theirs | {key: theirs[key].astype("f2")}),
            (['Llama has no weight "model.layers.0.self_attn.q_proj.bias"'], theirs | {"model.layers.0.self_attn.q_proj.bias": numpy.zeros(32, "f4")}),
            (["block.0.attention.qkv.weight holds NaN"], theirs | {"model.layers.0.self_attn.q_proj.weight": numpy.full((32, 32), numpy.nan, "f4")}),
        ]:
            write_safetensors(old, weights)
            self.refused(2, words, "import", old, self.path("x"), "--map", "llama")
        self.assertFalse(self.path("x").exists())
        narrow = self.imported("narrow", {"block.0.attention.qkv.weight": numpy.zeros((8, 8), "f4")})
        self.refused(2, ["block.0.attention.qkv.weight is not [width, width + 2 x"], "export", narrow, out, "--map", "llama")

    def test_a_file_with_dtypes_of_others_is_inspected_and_imported_without_them(self):
        text = b'{"__metadata__":{"k\\"":"\\u00e9"},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"s":{"dtype":"I8","shape":[4],"data_offsets":[8,12]}}'
        file = self.file("m.safetensors", struct.pack("<Q", len(text)) + text + b"12345678abcd")
        shown = self.done("inspect", file)
        wanted = ('metadata         k": \u00e9', "2 tensors, 12 bytes, 1 of them not readable here", "8  [2]\n", "4  [4] not readable here, skipped")
        for words in wanted:
            self.assertIn(words, shown)
        found = json.loads(self.done("inspect", file, "--json"))
        self.assertEqual([(t["name"], t["dtype"], t["readable"]) for t in found["tensors"]], [("w", "F32", True), ("s", "I8", False)])
        self.assertEqual((found["foreign"], found["files"][0]["metadata"]), (1, {'k"': "\u00e9"}))
        self.assertIn("not taken: s (I8)", self.done("import", file, self.path("run")))
        self.done("export", self.path("run"), self.path("out.safetensors"))
        self.same(read_safetensors(self.path("out.safetensors")), {"w": numpy.frombuffer(b"12345678", "<f4")})

    def test_shards_are_inspected_and_imported(self):
        folder, tensors = self.path("theirs"), self.some_tensors()
        folder.mkdir()
        shards = {"one.safetensors": ["a", "d"], "two.safetensors": ["b.scalar", "c.empty"]}
        for shard, names in shards.items():
            write_safetensors(folder / shard, {name: tensors[name] for name in names})
        weight_map = {name: shard for shard, names in shards.items() for name in names}
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
        self.assertIn("4 tensors", self.done("inspect", folder))
        for i, source in enumerate([folder, folder / "model.safetensors.index.json"]):
            self.done("import", source, self.path(f"run{i}"))
            self.done("export", self.path(f"run{i}"), self.path("out.safetensors"))
            self.same(read_safetensors(self.path("out.safetensors")), tensors)
        (folder / "two.safetensors").unlink()
        self.refused(2, ["shard two.safetensors", "b.scalar"], "import", folder, self.path("x"))


if __name__ == "__main__":
    unittest.main()
