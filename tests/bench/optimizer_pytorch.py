"""PyTorch's side of `scaletrain bench optimizer`: GradScaler, clip_grad_norm_ and AdamW over the same tensors, one step per request.

"open" contains the tensors' shapes; `check` is the sum of all parameters' magnitudes, computed untimed.
"""

import time

from pytorch_answers import made, serve, torch

WARM_UP = 3  # steps whose sums are requested


def read(path, tensors):
    with open(path, "rb") as file:
        flat = torch.frombuffer(bytearray(file.read()), dtype=torch.float32)
    counts = [torch.Size(dims).numel() for dims in tensors]
    return [piece.reshape(dims).clone() for piece, dims in zip(flat.split(counts), tensors)]


class Steps:
    """Parameters in one mode of AdamW, with their own scaler."""

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


serve(lambda request: made({mode: lambda mode=mode: Steps(request, mode).step for mode in ("fused", "foreach")}))
