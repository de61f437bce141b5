"""PyTorch's side of `scaletrain bench optimizer`: GradScaler, clip_grad_norm_ and AdamW over the same tensors, a step each time it is told to.

Started by the command line (capi/cli/pytorch_peer.cpp), which talks to it over pipes, one JSON object a line:
  {"do": "hello"}                            -> {"torch": "2.15.0"}
  {"do": "open", "tensors": [[3, 4]], ...}   -> {"modes": ["fused", "foreach"], "absent": {"fused": "why"}}
  {"do": "step", "mode": "fused"}            -> {"check": 41.5, "seconds": 0.004}
`check` is the sum of all parameters' magnitudes, taken off the clock. Whatever goes wrong is {"error": "why"}. The end of the input ends it.
"""

import contextlib
import json
import os
import sys
import time

# Only answers may reach the pipe: libraries like to print.
answers = os.fdopen(os.dup(1), "w")
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
os.dup2(os.open(os.environ.get("SCALETRAIN_PYTORCH_LOG", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), 2)

WARM_UP = 3  # steps whose sums are asked for


def read(path, tensors):
    with open(path, "rb") as file:
        flat = torch.frombuffer(bytearray(file.read()), dtype=torch.float32)
    counts = [torch.Size(dims).numel() for dims in tensors]
    return [piece.reshape(dims).clone() for piece, dims in zip(flat.split(counts), tensors)]


class Steps:
    """Parameters in one mode of AdamW, with a scaler of their own."""

    def __init__(self, request, mode):
        self.parameters = [torch.nn.Parameter(tensor) for tensor in read(request["parameters"], request["tensors"])]
        self.optimizer = torch.optim.AdamW(self.parameters, lr=1e-3, weight_decay=0.01, **{mode: True})
        self.scaler = torch.amp.GradScaler("cpu")
        scale = self.scaler.scale(torch.ones(()))
        self.scaled = [gradient * scale for gradient in read(request["gradients"], request["tensors"])]
        self.steps = 0
        for parameter, gradient in zip(self.parameters, self.scaled):
            parameter.grad = gradient.clone()

    def step(self):
        for parameter, gradient in zip(self.parameters, self.scaled):
            parameter.grad.copy_(gradient)  # as backward would leave them: unscale and clip write them
        start = time.perf_counter()
        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        seconds = time.perf_counter() - start
        self.steps += 1
        return {"check": self.check() if self.steps <= WARM_UP else 0.0, "seconds": seconds}

    def check(self):
        return sum(parameter.detach().double().abs().sum().item() for parameter in self.parameters)


def reason(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


def open_modes(request, modes):
    torch.set_num_threads(request["threads"])
    modes.clear()
    absent = {}
    for mode in ("fused", "foreach"):
        try:
            modes[mode] = Steps(request, mode)
        except Exception as error:
            absent[mode] = reason(error)
    return {"modes": list(modes), "absent": absent}


def answer(request, modes):
    if request["do"] == "hello":
        return {"torch": torch.__version__}
    if request["do"] == "open":
        return open_modes(request, modes)
    return modes[request["mode"]].step()


def main():
    modes = {}
    for line in sys.stdin:
        try:
            result = answer(json.loads(line), modes)
        except Exception as error:
            result = {"error": reason(error)}
        print(json.dumps(result), file=answers, flush=True)


try:
    import torch
except ImportError as error:
    sys.stdin.readline()
    print(json.dumps({"error": f"{sys.executable} has no torch: {error}"}), file=answers, flush=True)
else:
    with contextlib.suppress(KeyboardInterrupt):
        main()
