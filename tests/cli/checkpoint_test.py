"""`scaletrain checkpoint`: looks at checkpoints, proves them, cuts them anew, and takes them to safetensors and PyTorch and back."""

import collections
import json
import os
import struct
import subprocess
import unittest

import numpy

import torch_stub
from command_line import PROGRAM, ROOT, TINY, CommandLineTest, run
from plain_safetensors import read_safetensors, write_safetensors

GPT2 = ROOT / "tests/conformance/fixtures/gpt2/model.safetensors"
FIXTURES = ROOT / "tests/cli/fixtures"  # of torch.save and Lightning


class CheckpointTest(CommandLineTest):
    def done(self, *arguments):
        """Must end well; returns what it printed."""
        done = run("checkpoint", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def refused(self, status, words, *arguments):
        done = run("checkpoint", *arguments)
        self.assertEqual(done.returncode, status, done.stderr)
        last = done.stderr.splitlines()[-1]
        self.assertTrue(last.startswith("scaletrain: "), done.stderr)
        for word in words:
            self.assertIn(word, last)
        return done

    def path(self, name):
        return self.folder / name

    def some_tensors(self):
        random = numpy.random.default_rng(3)
        return {
            "a": random.random((300, 1000), dtype="f4"),  # more than one block of its file
            "b.scalar": numpy.array(7, "i8"),
            "c.empty": numpy.zeros((0, 4), "f2"),
            "d": random.integers(0, 255, 77, dtype="u1"),
        }

    def imported(self, name="run", tensors=None, *arguments):
        source = self.path("source.safetensors")
        write_safetensors(source, tensors or self.some_tensors(), {"format": "pt", "epoch": "3"})
        self.done("import", source, self.path(name), *arguments)
        return self.path(name)

    def same(self, a, b):
        self.assertEqual(sorted(a), sorted(b))
        for name in a:
            self.assertEqual((a[name].dtype, a[name].shape, a[name].tobytes()), (b[name].dtype, b[name].shape, b[name].tobytes()), name)


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
        # What is read falls back to the one before, and says so.
        done = run("checkpoint", "hash", folder)
        self.assertEqual((done.returncode, done.stdout), (0, older))
        self.assertIn("passed over step-00000002", done.stderr)
        self.refused(3, [file.name, "block 0"], "hash", folder / "step-00000002")
        done = run("checkpoint", "reshard", folder, self.path("cut"), "--shards", 2)
        self.assertEqual(done.returncode, 0)
        self.assertIn("passed over step-00000002", done.stderr)
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
            (["do what", "inspect"], []),
            (["unknown inspekt", "export"], ["inspekt", folder]),
            (["name a run's folder"], ["hash"]),
            (["name the file"], ["export", folder]),
            (["unexpected argument", "more"], ["verify", folder, "more"]),
            (["nowhere"], ["inspect", self.path("nowhere")]),
            (["no checkpoint"], ["inspect", self.folder]),
            (["is no folder"], ["verify", GPT2]),
            (["would be in a checkpoint"], ["export", folder, next(folder.glob("step-*")) / "tensors.safetensors"]),
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
            (["at byte 54: more text behind its end"], struct.pack("<Q", len(text) + 1) + text + b"\0" + b"1234"),
            (["a\\u0000b", "NUL in its name"], struct.pack("<Q", len(text) + 7) + text.replace(b'"a"', b'"a\\u0000b"') + b"1234"),
        ]:
            with self.subTest(words):
                self.refused(2, words, "import", self.file("bad.safetensors", data), self.path("x"))
        self.assertFalse(self.path("x").exists(), "nothing is made of a bad file")


class Strangers(CheckpointTest):
    """What stands where a file or a folder belongs is named, and nothing waits for it."""

    def training(self, folder):
        return run("train", "--data", self.text, *TINY, "--steps", 2, "--checkpoint", folder)

    def test_in_place_of_a_runs_lock(self):
        folder = self.path("run")
        folder.mkdir()
        os.mkfifo(folder / "lock")
        refusal = self.refused(2, [f"{folder}/lock", "a pipe", "belongs", "remove"], "import", GPT2, folder).stderr
        done = self.training(folder)
        self.assertEqual((done.returncode, done.stderr), (2, refusal))
        self.assertEqual([path.name for path in folder.iterdir()], ["lock"])

    def test_in_place_of_a_runs_folder(self):
        folder = self.path("run")
        folder.symlink_to("nowhere")
        words = [str(folder), "a link to nowhere, which is not there", "belongs"]
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
                self.assertRegex(self.refused(3, ["1 of 2"], "verify", folder).stdout, rf"step-00000002: .*{what}.* belongs.*put the file back")
                done = run("checkpoint", "hash", folder)
                self.assertEqual((done.returncode, done.stdout), (0, older))
                self.assertRegex(done.stderr, rf"passed over step-00000002: .*{what}")
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
        self.refused(2, ["lm_head.weight", "is not wte.weight"], "import", self.path("untied.safetensors"), self.path("x"), "--map", "gpt2")


    def test_a_file_with_dtypes_of_others_is_inspected_and_imported_without_them(self):
        text = b'{"__metadata__":{"k\\"":"\\u00e9"},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"s":{"dtype":"I8","shape":[4],"data_offsets":[8,12]}}'
        file = self.file("m.safetensors", struct.pack("<Q", len(text)) + text + b"12345678abcd")
        shown = self.done("inspect", file)
        for words in ('metadata         k": \u00e9', "2 tensors, 12 bytes, 1 of them not readable here", "8  [2]\n", "4  [4] not readable here, passed over"):
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


class Torch(CheckpointTest):
    def saved(self, tree):
        torch_stub.save(self.path("file.pt"), tree)
        return self.path("file.pt")

    def imported_torch(self, tree, *arguments):
        said = self.done("import", self.saved(tree), self.path("run"), *arguments)
        self.done("export", self.path("run"), self.path("all.safetensors"), "--everything")
        return said, read_safetensors(self.path("all.safetensors"))

    def test_a_state_dict_alone(self):
        weights = collections.OrderedDict(a=numpy.arange(6, dtype="f4").reshape(2, 3), t=numpy.arange(6, dtype="f8").reshape(2, 3).T, i=numpy.array(3))
        _, tensors = self.imported_torch(weights)
        self.same(tensors, {name: numpy.ascontiguousarray(array).reshape(array.shape) for name, array in weights.items()})

    def test_an_optimizers_state_gets_the_names_here(self):
        a, b = numpy.ones((2, 3), "f4"), numpy.zeros(3, "f4")
        state = {i: {"step": numpy.array(12, "f4"), "exp_avg": x + 1, "exp_avg_sq": x + 2} for i, x in enumerate((a, b))}
        groups = [{"lr": 0.1, "betas": (0.9, 0.99), "foreach": None, "amsgrad": False, "params": [0]}, {"lr": 0.2, "params": [1]}]
        tree = {"model": {"a": a, "b": b}, "optimizer": {"state": state, "param_groups": groups}, "names": ["a", "b"]}
        said, tensors = self.imported_torch(tree)
        self.assertIn("6 tensors, step 12", said)
        wanted = {"a": a, "b": b, "moment1.a": a + 1, "moment1.b": b + 1, "moment2.a": a + 2, "moment2.b": b + 2}
        self.same(tensors, wanted)
        named = [group | {"param_names": [name]} for group, name in zip(groups, "ab")]
        _, tensors = self.imported_torch({"model_state_dict": tree["model"], "optimizer_state_dict": {"state": state, "param_groups": named}})
        self.same(tensors, wanted)

        del tree["names"]
        self.refused(2, ["nothing names them", "named_parameters"], "import", self.saved(tree), self.path("x"))
        tree["names"] = ["a"]
        self.refused(2, ["state of parameter 1"], "import", self.saved(tree), self.path("x"))
        tree["names"] = ["a", "b"]
        state[1]["max_exp_avg_sq"] = b
        self.refused(2, ["max_exp_avg_sq", "b"], "import", self.saved(tree), self.path("x"))
        del state[1]["max_exp_avg_sq"]
        state[1]["step"] = numpy.array(13, "f4")
        self.refused(2, ["13", "12"], "import", self.saved(tree), self.path("x"))

    def test_pickles_are_not_run(self):
        tensor = b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpuK%cK"
        tensor += b"tQK%c(K%ct(K%ct\x89ccollections\nOrderedDict\n)RtR"

        def one(elements, offset, size, stride):
            return b"\x80\x02}X\x01\0\0\0a" + tensor.replace(b"K%cK", b"K%c") % (elements, offset, size, stride) + b"s."

        torch_stub.save_pickle(self.path("good.pt"), one(4, 1, 3, 1), {"0": bytes(16)})
        self.done("import", self.path("good.pt"), self.path("good"))
        trace = self.path("trace")
        for words, text in [
            (["posix.system"], b"\x80\x02cposix\nsystem\nX%c\0\0\0touch %b\x85R." % (len(str(trace)) + 6, str(trace).encode())),
            (["builtins.eval"], b"\x80\x02}X\x01\0\0\0acbuiltins\neval\nX\x01\0\0\x001\x85Rs."),
            (["torch.nn.modules.linear.Linear", "state_dict"], b"\x80\x02ctorch.nn.modules.linear\nLinear\n)\x81}b."),
            (["protocol 4"], b"\x80\x04N."),
            (["cut short"], one(4, 0, 4, 1)[:-1]),
            (["cut short"], b"\x80\x02X\xff\xff\xff\xffabc."),
            (["stack is empty"], b"\x80\x02s."),
            (["did not open"], b"\x80\x02t."),
            (["which there is not"], b"\x80\x02h\x07."),
            (["more than"], b"\x80\x02" + b"N" * 1_100_000 + b"."),
            (["reaches element 4"], one(4, 1, 4, 1)),
            (["expanded"], one(4, 0, 200, 0)),
            (["shorter than the storage"], one(5, 0, 5, 1)),
            (["torch.QInt8Storage"], one(4, 0, 4, 1).replace(b"FloatStorage", b"QInt8Storage")),
            (["no weights"], b"\x80\x02}."),
            (["no dict of tensors"], b"\x80\x02K\x01."),
        ]:
            with self.subTest(words):
                torch_stub.save_pickle(self.path("bad.pt"), text, {"0": bytes(16)})
                self.refused(2, words, "import", self.path("bad.pt"), self.path("x"))
        torch_stub.save_pickle(self.path("bad.pt"), one(4, 0, 4, 1), {"0": bytes(16)}, torch_stub.zipfile.ZIP_DEFLATED)
        self.refused(2, ["is compressed"], "import", self.path("bad.pt"), self.path("x"))
        self.assertFalse(trace.exists())

    def test_weights_of_a_dtype_that_cannot_be_read_are_passed_over(self):
        said = self.done("import", self.saved({"w": numpy.ones(3, "f4"), "s": numpy.ones(4, "i1")}), self.path("run"))
        self.assertIn("not taken: s (torch.CharStorage)", said)
        self.done("export", self.path("run"), self.path("out.safetensors"))
        self.same(read_safetensors(self.path("out.safetensors")), {"w": numpy.ones(3, "f4")})
        bytes_ = b"(X\x07\0\0\0storagectorch.storage\nUntypedStorage\nX\x01\0\0\x000X\x03\0\0\0cpuK\x04tQK\0K\x04\x85K\x01\x85\x89N"
        text = b"\x80\x02}X\x01\0\0\0actorch._utils\n_rebuild_tensor_v3\n(" + bytes_ + b"ctorch\nfloat8_e5m2\ntRs."
        torch_stub.save_pickle(self.path("f8.pt"), text, {"0": bytes(4)})
        self.refused(2, ["a (torch.float8_e5m2)"], "import", self.path("f8.pt"), self.path("x"))

    def test_archives_that_are_broken(self):
        good = self.saved({"a": numpy.arange(64, dtype="f4")}).read_bytes()
        for length in (1, 40, len(good) // 2, len(good) - 1):
            self.refused(2, [], "import", self.file("cut.pt", good[:length]), self.path("x"))
        for name in (b"archive/data.pkl", b"archive/data/0"):
            at = good.index(name) + len(name) + 8
            flipped = good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :]
            self.refused(2, [name.decode(), "checksum"], "import", self.file("flipped.pt", flipped), self.path("x"))
        self.refused(2, ["no archive/data.pkl"], "import", self.file("renamed.pt", good.replace(b"data.pkl", b"date.pkl")), self.path("x"))


class OfATrainer(CheckpointTest):
    """A run's own checkpoints, to PyTorch and back."""

    def trained(self, *recipe):
        folder = self.path("trained")
        self.train("--data", self.text, "--steps", 3, "--checkpoint", folder, *TINY, "--lr", "0.01", "--warmup", 0, *recipe)
        return folder

    def everything(self, folder):
        self.done("export", folder, self.path("everything.safetensors"), "--everything")
        return read_safetensors(self.path("everything.safetensors"))

    def exported(self, *recipe):
        folder = self.trained(*recipe)
        self.done("export", folder, self.path("out.pt"), "--format", "torch")
        return torch_stub.load(self.path("out.pt")), self.everything(folder)

    def there_and_back(self, *recipe):
        file, tensors = self.exported(*recipe)
        step = ["--step", 3] if "sgd" in recipe else []  # torch.optim.SGD's state has none
        self.done("import", self.path("out.pt"), self.path("back"), *step)
        self.same(self.everything(self.path("back")), tensors)
        return file, tensors

    def test_hash_is_the_runs_state(self):
        folder = self.trained()
        state = next(line.split()[-1] for line in self.output.splitlines() if line.startswith("state"))
        self.assertEqual(self.done("hash", folder).strip(), state)
        self.done("reshard", folder, self.path("cut"), "--shards", 4)
        self.assertEqual(self.done("hash", self.path("cut")).strip(), state)
        table = self.done("inspect", folder)
        for words in ("step             3", "updates 3", "lr 0.01", "warmup 0", "parameter tensors", "optimizer tensors", "moment2.block.0"):
            self.assertIn(words, table)

    def test_adamw_is_as_torch_has_it(self):
        groups = json.dumps([{"pattern": "*.gamma", "weight_decay_scale": 0, "lr_scale": 0.5}, {"pattern": "final_norm.beta", "frozen": True}])
        recipe = self.file("recipe.json", json.dumps({"groups": json.loads(groups), "beta2": 0.95, "ema_decay": 0.9}))
        file, tensors = self.there_and_back("--recipe", recipe)
        names, groups = file["names"], file["optimizer"]["param_groups"]
        self.assertEqual(file["class"], "torch.optim.AdamW")
        self.assertEqual(sorted(names), sorted(set(file["model"]) - {"final_norm.beta"}))
        self.assertEqual([group["params"] for group in groups], [list(range(3)), list(range(3, len(names)))])
        self.assertTrue(all(name.endswith(".gamma") for name in names[:3]))
        wanted = {"betas": (0.9, 0.95), "eps": 1e-8, "amsgrad": False, "decoupled_weight_decay": True, "fused": None}
        for group, lr, decay in zip(groups, (0.005, 0.01), (0, 0.01)):
            self.assertEqual(group | wanted | {"lr": lr, "weight_decay": decay}, group)
        self.assertEqual(len(file["optimizer"]["state"]), len(names))
        for i, state in file["optimizer"]["state"].items():
            self.assertEqual(state["step"], 3)
            self.assertEqual(state["exp_avg"].tobytes(), tensors["moment1." + names[i]].tobytes())
            self.assertEqual(state["exp_avg_sq"].tobytes(), tensors["moment2." + names[i]].tobytes())
        self.assertEqual(file["average"]["final_norm.gamma"].tobytes(), tensors["average.final_norm.gamma"].tobytes())

    def test_the_other_optimizers_go_there_and_back(self):
        for optimizer, states, more in [
            ("sgd", {"momentum_buffer"}, ["--momentum", "0.9"]),
            ("rmsprop", {"step", "square_avg", "momentum_buffer", "grad_avg"}, ["--momentum", "0.9", "--centered"]),
            ("adagrad", {"step", "sum"}, []),
            ("adafactor", {"step", "row_var", "col_var"}, []),
        ]:
            with self.subTest(optimizer):
                for name in ("trained", "back"):
                    subprocess.run(["rm", "-rf", self.path(name)], check=True)
                file, _ = self.there_and_back("--optimizer", optimizer, *more)
                i = file["names"].index("block.0.mlp.expand.weight")
                self.assertEqual(set(file["optimizer"]["state"][i]), states)
                if optimizer == "adafactor":
                    self.assertEqual([file["optimizer"]["state"][i][key].shape for key in ("row_var", "col_var")], [(16, 1), (1, 64)])

    def test_state_that_does_not_say_its_step_is_refused(self):
        self.exported("--optimizer", "sgd", "--momentum", "0.9")
        self.refused(2, ["out.pt", "SGD", "--step"], "import", self.path("out.pt"), self.path("back"))
        self.assertFalse(self.path("back").exists())

    def test_a_lazily_negated_tensor_keeps_its_sign(self):
        self.done("import", FIXTURES / "negated_view.pt", self.path("back"))  # torch.tensor([1., 2.])._neg_view()
        values = self.everything(self.path("back"))["w"]
        self.assertEqual(values.tolist(), [-1, -2])

    def test_what_is_not_there_and_old_files_are_named_as_such(self):
        self.refused(2, ["there is no folder", "nosuch"], "inspect", self.path("nosuch"))
        self.refused(2, ["before_1_6.pt", "before PyTorch 1.6"], "import", FIXTURES / "before_1_6.pt", self.path("back"))
        self.refused(2, ["there is no folder", "nodir"], "export", self.trained(), self.path("nodir") / "x.safetensors")

    def test_what_an_import_does_not_take_is_said(self):
        said = self.done("import", FIXTURES / "lightning.pt", self.path("back"))
        self.assertRegex(said, r"(?m)^not taken: .*\boptimizer_states\b")

    def test_what_torch_has_not_is_named(self):
        for optimizer in ("lion", "adamw-8bit", "muon"):
            with self.subTest(optimizer):
                subprocess.run(["rm", "-rf", self.path("trained")], check=True)
                folder = self.trained("--optimizer", optimizer)
                self.refused(2, [optimizer, "--everything"], "export", folder, self.path("out.pt"), "--format", "torch")
                self.assertFalse(self.path("out.pt").exists())

    def test_gpt2_names_with_the_optimizers_state(self):
        folder = self.trained()
        self.done("export", folder, self.path("out.pt"), "--format", "torch", "--map", "gpt2")
        file = torch_stub.load(self.path("out.pt"))
        self.assertIn("transformer.h.0.attn.c_attn.weight", file["model"])
        self.assertEqual(sorted(file["names"]), sorted(file["model"]))
        self.done("import", self.path("out.pt"), self.path("back"), "--map", "gpt2")
        self.same(self.everything(self.path("back")), self.everything(folder))

    def test_a_run_goes_on_from_what_was_imported(self):
        self.there_and_back()
        log = self.train("--data", self.text, "--steps", 5, "--checkpoint", self.path("back"), "--resume", *TINY, "--lr", "0.01", "--warmup", 0)
        straight = self.train("--data", self.text, "--steps", 5, "--checkpoint", self.path("straight"), *TINY, "--lr", "0.01", "--warmup", 0)
        self.assertEqual(log[-1]["state"], straight[-1]["state"])

    def test_with_pytorch_itself(self):
        python = os.environ.get("SCALETRAIN_PYTHON", ROOT / ".venv/bin/python")
        if not os.path.exists(python) or subprocess.run([python, "-c", "import torch"], capture_output=True).returncode != 0:
            self.skipTest("no PyTorch")
        self.exported()
        script = self.file("step.py", TORCH_STEP)
        subprocess.run([python, script, self.path("out.pt"), self.path("again.pt")], check=True, timeout=300)
        self.done("import", self.path("again.pt"), self.path("again"))
        self.same(self.everything(self.path("again")), self.everything(self.path("trained")))


# Loads, makes a step with gradients of zero at a rate of zero, takes it back, and saves what it then has by itself.
TORCH_STEP = """
import sys, torch
file = torch.load(sys.argv[1], weights_only=True)
weights = {name: torch.nn.Parameter(file["model"][name]) for name in file["names"]}
optimizer = torch.optim.AdamW(weights.values())
optimizer.load_state_dict(file["optimizer"])
first = optimizer.state[weights[file["names"][0]]]
assert first["step"] == 3 and first["exp_avg"].abs().max() > 0, first
assert optimizer.param_groups[0]["lr"] == 0.01
kept = {key: value.clone() for key, value in first.items()}
for weight in weights.values():
    weight.grad = torch.zeros_like(weight)
optimizer.step()
assert first["step"] == 4 and torch.allclose(first["exp_avg"], 0.9 * kept["exp_avg"], rtol=1e-6)
optimizer = torch.optim.AdamW((torch.nn.Parameter(tensor) for tensor in file["model"].values()))
file = torch.load(sys.argv[1], weights_only=True, mmap=True)
torch.save({key: file[key] for key in ("model", "optimizer", "names")}, sys.argv[2])
"""


if __name__ == "__main__":
    unittest.main()
