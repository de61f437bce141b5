"""PyTorch's side of `scaletrain bench checkpoint`: torch.save and safetensors, each written to disk (fsync) and read back, with the same bytes.

`check` is the number of bytes.
"""

import functools
import os
import pathlib
import time

from pytorch_answers import serve, torch

TENSOR = 16 << 20  # bytes of each tensor except the last


class Files:
    def __init__(self, options):
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
        # Its tensors are views of a mapped file; one read of each makes it comparable with the other loads.
        return {name: tensor.clone() for name, tensor in self.safetensors.load_file(self.safetensors_file).items()}

    def step(self, mode):
        start = time.perf_counter()
        self.modes[mode]()
        seconds = time.perf_counter() - start
        return {"check": sum(tensor.numel() * 4 for tensor in self.tensors.values()), "seconds": seconds}


def opened(options):
    files = Files(options)
    return {mode: functools.partial(files.step, mode) for mode in files.modes}, files.absent


serve(opened)
