"""PyTorch's side of `scaletrain bench step`: the same GPT, weights, batches, optimizer and threads, one step per request.

`check` is the loss.
"""

import json
import struct
import time

from pytorch_answers import made, serve, torch

WARM_UP = 20  # our recipe's default: lr * min(1, (k + 1) / 20)


def read_safetensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        body = bytearray(file.read())
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        assert entry["dtype"] == "F32", (name, entry)
        first, last = entry["data_offsets"]
        flat = torch.frombuffer(body[first:last], dtype=torch.float32)
        tensors[name] = flat.reshape(entry["shape"]).clone()
    return tensors


def make_gpt(options, weights):
    """GPT-2: pre-norm, learned positions, tied head, tanh GELU. Parameters have our names; matrices are [in, out]."""
    functional = torch.nn.functional
    layers, width, heads = options["layers"], options["width"], options["heads"]

    class Gpt(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = torch.nn.ParameterDict({name.replace(".", "/"): torch.nn.Parameter(w) for name, w in weights.items()})

        def w(self, name):
            return self.weights[name.replace(".", "/")]

        def norm(self, x, name):
            return functional.layer_norm(x, (width,), self.w(name + ".gamma"), self.w(name + ".beta"))

        def linear(self, x, name):
            return torch.addmm(self.w(name + ".bias"), x, self.w(name + ".weight"))

        def attention(self, x, name, batch, context):
            q, k, v = self.linear(x, name + ".qkv").view(batch, context, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.linear(y.transpose(1, 2).reshape(batch * context, width), name + ".projection")

        def forward(self, tokens, targets):
            batch, context = tokens.shape
            x = (functional.embedding(tokens, self.w("token_embedding.weight")) + self.w("position_embedding.weight")).view(-1, width)
            for i in range(layers):
                block = f"block.{i}"
                x = x + self.attention(self.norm(x, block + ".attention_norm"), block + ".attention", batch, context)
                h = self.linear(self.norm(x, block + ".mlp_norm"), block + ".mlp.expand")
                x = x + self.linear(functional.gelu(h, approximate="tanh"), block + ".mlp.contract")
            logits = self.norm(x, "final_norm") @ self.w("token_embedding.weight").t()
            return functional.cross_entropy(logits, targets.reshape(-1))

    return Gpt()


class Training:
    """A model in one mode, with its own optimizer and position in the batches."""

    def __init__(self, options, compiled):
        self.batches = read_batches(options)
        self.model = make_gpt(options, read_safetensors(options["weights"]))
        self.forward = torch.compile(self.model) if compiled else self.model
        self.is_bf16 = options["precision"] == "bf16"
        # The fused AdamW is PyTorch's fastest on a CPU.
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=options["lr"], weight_decay=0.01, fused=True)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda k: min(1.0, (k + 1) / WARM_UP))
        self.steps = 0

    def loss(self, tokens, targets):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.is_bf16):
            return self.forward(tokens, targets)

    def compile_now(self):
        """Forward and backward once, without an update, so that no step includes compilation."""
        self.loss(*self.batches[0]).backward()
        self.optimizer.zero_grad(set_to_none=True)

    def step(self):
        tokens, targets = self.batches[self.steps]
        start = time.perf_counter()
        loss = self.loss(tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        value = loss.item()
        seconds = time.perf_counter() - start
        self.schedule.step()
        self.steps += 1
        return {"check": value, "seconds": seconds}


def read_batches(options):
    batch, context = options["batch"], options["context"]
    with open(options["tokens"], "rb") as file:
        ids = torch.frombuffer(bytearray(file.read()), dtype=torch.int32).long().view(-1, batch, context + 1)
    return [(rows[:, :-1].contiguous(), rows[:, 1:].contiguous()) for rows in ids]


def opened(options):
    torch.compiler.reset()
    eager = Training(options, compiled=False)

    def compiled():
        training = Training(options, compiled=True)
        training.compile_now()
        return training.step

    modes, absent = made({"compiled": compiled})
    return {"eager": eager.step, **modes}, absent


serve(opened)
