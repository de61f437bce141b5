"""`scaletrain checkpoint`: inspects, verifies, reshards and hashes checkpoints, and converts them to safetensors and back."""

import json
import os
import struct
import unittest

import numpy

from checkpoint_commands import CheckpointTest
from command_line import ROOT, TINY, run
from plain_safetensors import read_safetensors, write_safetensors

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
