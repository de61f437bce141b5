"""`scaletrain checkpoint`: import and export of PyTorch files."""

import collections
import json
import os
import subprocess
import unittest

import numpy

import torch_stub
from checkpoint_commands import CheckpointTest
from command_line import ROOT, TINY
from plain_safetensors import read_safetensors

FIXTURES = ROOT / "tests/cli/fixtures"  # of torch.save and Lightning


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
            (["truncated"], one(4, 0, 4, 1)[:-1]),
            (["truncated"], b"\x80\x02X\xff\xff\xff\xffabc."),
            (["stack is empty"], b"\x80\x02s."),
            (["did not open"], b"\x80\x02t."),
            (["which does not exist"], b"\x80\x02h\x07."),
            (["more than"], b"\x80\x02" + b"N" * 1_100_000 + b"."),
            (["reaches element 4"], one(4, 1, 4, 1)),
            (["expanded"], one(4, 0, 200, 0)),
            (["shorter than the storage"], one(5, 0, 5, 1)),
            (["torch.QInt8Storage"], one(4, 0, 4, 1).replace(b"FloatStorage", b"QInt8Storage")),
            (["no weights"], b"\x80\x02}."),
            (["not a dict of tensors"], b"\x80\x02K\x01."),
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
        self.refused(2, ["no entry archive/data.pkl"], "import", self.file("renamed.pt", good.replace(b"data.pkl", b"date.pkl")), self.path("x"))


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
        step = ["--step", 3] if "sgd" in recipe else []  # torch.optim.SGD's state has no step
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
        self.refused(2, ["no such folder", "nosuch"], "inspect", self.path("nosuch"))
        self.refused(2, ["before_1_6.pt", "before PyTorch 1.6"], "import", FIXTURES / "before_1_6.pt", self.path("back"))
        self.refused(2, ["folder", "nodir"], "export", self.trained(), self.path("nodir") / "x.safetensors")

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
        file, tensors = self.there_and_back()
        model, names = {"model." + name: w for name, w in file["model"].items()}, ["model." + name for name in file["names"]]  # Lightning's
        torch_stub.save(self.path("wrapped.pt"), {"model": model, "optimizer": file["optimizer"], "names": names})
        self.assertIn("names: without model.\n", self.done("import", self.path("wrapped.pt"), self.path("unwrapped")))
        self.same(self.everything(self.path("unwrapped")), tensors)
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


# Loads the file, makes a step with zero gradients and a zero rate, and saves the result with torch alone.
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
