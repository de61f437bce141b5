"""PyTorch's side of `scaletrain bench checkpoint`: torch.save and safetensors, each onto the disk (fsync) and back, of as many bytes.

Started by the command line (capi/cli/pytorch_peer.cpp), which talks to it over pipes, one JSON object a line:
  {"do": "hello"}                                  -> {"torch": "2.15.0"}
  {"do": "open", "bytes": .., "folder": .., ..}    -> {"modes": ["torch-save", ..], "absent": {"safetensors": "why"}}
  {"do": "step", "mode": "torch-save"}             -> {"check": bytes, "seconds": 0.4}
Whatever goes wrong is {"error": "why"}. The end of the input ends it.
"""

import json
import os
import pathlib
import sys
import time

# Only answers may reach the pipe: libraries like to print.
answers = os.fdopen(os.dup(1), "w")
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
os.dup2(os.open(os.environ.get("SCALETRAIN_PYTORCH_LOG", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), 2)

TENSOR = 16 << 20  # bytes of each but the last


class Files:
    def __init__(self, options):
        torch.set_num_threads(options["threads"])
        folder = pathlib.Path(options["folder"])
        self.torch_file, self.safetensors_file = folder / "peer.pt", folder / "peer.safetensors"
        left, self.tensors = options["bytes"], {}
        while left > 0:
            some = min(left, TENSOR)
            self.tensors[f"tensor.{len(self.tensors)}"] = torch.rand(some // 4)
            left -= some
        self.modes = {"torch-save": self.torch_save, "torch-load": self.torch_load}
        self.absent = {}
        try:
            import safetensors.torch

            self.safetensors = safetensors.torch
            self.modes |= {"safetensors-save": self.safetensors_save, "safetensors-load": self.safetensors_load}
        except ImportError as error:
            self.absent["safetensors"] = str(error)

    def on_disk(self, path):
        with open(path, "rb+") as file:
            os.fsync(file.fileno())

    def torch_save(self):
        torch.save(self.tensors, self.torch_file)
        self.on_disk(self.torch_file)

    def torch_load(self):
        return torch.load(self.torch_file, weights_only=True)

    def safetensors_save(self):
        self.safetensors.save_file(self.tensors, self.safetensors_file)
        self.on_disk(self.safetensors_file)

    def safetensors_load(self):
        # Its tensors are views of a mapped file: one read of each is what a load elsewhere has done at its end.
        return {name: tensor.clone() for name, tensor in self.safetensors.load_file(self.safetensors_file).items()}

    def step(self, mode):
        start = time.perf_counter()
        self.modes[mode]()
        seconds = time.perf_counter() - start
        return {"check": sum(tensor.numel() * 4 for tensor in self.tensors.values()), "seconds": seconds}


def answer(request, state):
    if request["do"] == "hello":
        return {"torch": torch.__version__}
    if request["do"] == "open":
        state["files"] = Files(request)
        return {"modes": list(state["files"].modes), "absent": state["files"].absent}
    return state["files"].step(request["mode"])


try:
    import torch
except ImportError as missing:
    torch = None
    WHY = f"{sys.executable} has no torch: {missing}"

state = {}
for line in sys.stdin:
    try:
        result = answer(json.loads(line), state) if torch is not None else {"error": WHY}
    except Exception as error:  # noqa: BLE001 - whatever it is, the other side must hear of it
        result = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(result), file=answers, flush=True)
