"""What PyTorch does on this machine: the numbers that the CUDA plug-in will be compared with. One JSON line a measurement.

Usage: peers_pytorch.py matmul|adamw|layer_norm|attention|step
Times are [median, 10th and 90th percentile] of device time by events. Without a GPU it runs tiny sizes on the CPU, to try the script only.
"""

import json
import math
import sys
import time

import torch
import torch.nn.functional as functional
from torch.nn.attention import SDPBackend, sdpa_kernel

DRY = not torch.cuda.is_available()
DEVICE = "cpu" if DRY else "cuda"
GPT2 = {"124M": dict(layers=12, heads=12, width=768), "1.5B": dict(layers=48, heads=25, width=1600)}


def line(**facts):
    print(json.dumps({**facts, **({"dry": True} if DRY else {})}), flush=True)


def spread(samples):
    ordered = sorted(samples)
    return [round(ordered[round(share * (len(ordered) - 1))], 4) for share in (0.5, 0.1, 0.9)]


def ms(body, rounds=30, calls=1, warm_up=5):
    """Device time of one call, by round."""
    for _ in range(warm_up):
        body()
    samples = []
    for _ in range(3 if DRY else rounds):
        if DRY:
            begin = time.perf_counter()
            body()
            samples.append((time.perf_counter() - begin) * 1e3)
            continue
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(calls):
            body()
        end.record()
        end.synchronize()
        samples.append(begin.elapsed_time(end) / calls)
    return spread(samples)


def matmul():
    tokens = {"124M": 16384, "1.5B": 8192}
    for dtype in ("bf16", "tf32", "f32"):
        torch.set_float32_matmul_precision("high" if dtype == "tf32" else "highest")
        kind = torch.bfloat16 if dtype == "bf16" else torch.float32
        for model, shape in GPT2.items():
            width, m = (64, 128) if DRY else (shape["width"], tokens[model])
            outs = {"qkv": (width, 3 * width), "projection": (width, width), "up": (width, 4 * width), "down": (4 * width, width), "head": (width, 50304)}
            for name, (k, n) in outs.items():
                if DRY and name == "head":
                    continue
                x, w = torch.randn(m, k, device=DEVICE, dtype=kind), torch.randn(k, n, device=DEVICE, dtype=kind)
                dy = torch.randn(m, n, device=DEVICE, dtype=kind)
                for part, body in {"forward": lambda: x @ w, "input gradient": lambda: dy @ w.T, "weight gradient": lambda: x.T @ dy}.items():
                    slow = dtype == "f32" and name == "head"
                    t = ms(body, rounds=20, calls=1 if slow else 5, warm_up=2)
                    line(matmul=f"{model} {name} {part}", dtype=dtype, mnk=[m, n, k], ms=t, tflop_s=round(2 * m * n * k / t[0] / 1e9, 1))
                if name != "head":
                    t = ms(lambda: dy.sum(0), rounds=20, calls=5)
                    line(bias_gradient=f"{model} {name}", dtype=dtype, rows=m, columns=n, ms=t, gb_s=round(dy.numel() * dy.element_size() / t[0] / 1e6))


def parameters_of(model):
    width, layers = GPT2[model]["width"], GPT2[model]["layers"]
    shapes = [(50257, width), (1024, width), (width,), (width,)]
    for _ in range(layers):
        shapes += [(width,), (width,), (width, 3 * width), (3 * width,), (width, width), (width,)]
        shapes += [(width,), (width,), (width, 4 * width), (4 * width,), (4 * width, width), (width,)]
    return shapes


def adamw():
    n = 1 << 16 if DRY else 1 << 29
    a, b = torch.empty(n, device=DEVICE), torch.rand(n, device=DEVICE)
    t = ms(lambda: a.copy_(b))
    copy = 8 * n / t[0] / 1e6
    line(adamw="device copy of 2 GiB", ms=t, gb_s=round(copy))
    del a, b
    for layout in ("148 tensors", "one flat tensor"):
        shapes = parameters_of("124M")
        count = sum(math.prod(s) for s in shapes)
        if DRY:
            shapes, count = [(64, 64), (64,)], 4160
        if layout == "one flat tensor":
            shapes = [(count,)]
        for kind in ("fused", "foreach"):
            parameters = [torch.nn.Parameter(torch.randn(s, device=DEVICE)) for s in shapes]
            for p in parameters:
                p.grad = torch.randn_like(p)
            optimizer = torch.optim.AdamW(parameters, lr=1e-4, weight_decay=0.1, **({} if DRY else {kind: True}))
            scaler = torch.amp.GradScaler(DEVICE, init_scale=1.0, growth_interval=10**9)

            def clip_and_step():
                torch.nn.utils.clip_grad_norm_(parameters, 1.0)
                optimizer.step()

            def unscale_clip_and_step():
                scaler.scale(one)
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(parameters, 1.0)
                scaler.step(optimizer)
                scaler.update()

            one = torch.ones((), device=DEVICE)
            for what, body in {"step": optimizer.step, "clip, step": clip_and_step, "unscale, clip, step": unscale_clip_and_step}.items():
                t = ms(body)
                line(adamw=f"{kind}, {layout}: {what}", parameters=count, ms=t, gb_s_of_28_bytes=round(28 * count / t[0] / 1e6),
                     share_of_copy=round(28 * count / t[0] / 1e6 / copy, 3))
            if kind == "fused" and not DRY:  # in a graph: the device's time without Python's
                graphed = torch.optim.AdamW(parameters, lr=torch.tensor(1e-4, device=DEVICE), weight_decay=0.1, fused=True, capturable=True)
                graphed.step()

                def graphed_clip_and_step():
                    torch.nn.utils.clip_grad_norm_(parameters, 1.0)
                    graphed.step()

                for what, body in {"step": graphed.step, "clip, step": graphed_clip_and_step}.items():
                    graph = torch.cuda.CUDAGraph()
                    try:
                        with torch.cuda.graph(graph):
                            body()
                    except RuntimeError as error:
                        line(adamw=f"{kind}, {layout}, in a CUDA graph: {what}", error=str(error).splitlines()[0][:200])
                        continue
                    t = ms(graph.replay)
                    line(adamw=f"{kind}, {layout}, in a CUDA graph: {what}", parameters=count, ms=t, gb_s_of_28_bytes=round(28 * count / t[0] / 1e6),
                         share_of_copy=round(28 * count / t[0] / 1e6 / copy, 3))
            del parameters, optimizer


def layer_norm():
    compiled = torch.compile(lambda x, g, b: functional.layer_norm(x, (x.shape[-1],), g, b), dynamic=False)
    eager = lambda x, g, b: functional.layer_norm(x, (x.shape[-1],), g, b)
    for width, rows in ((768, 262144), (1600, 131072)):
        for kind in (torch.bfloat16, torch.float32):
            size = (64 if DRY else rows, width)
            x = torch.randn(size, device=DEVICE, dtype=kind, requires_grad=True)
            g, b = (torch.randn(width, device=DEVICE, dtype=kind, requires_grad=True) for _ in range(2))
            dy = torch.randn(size, device=DEVICE, dtype=kind)
            for how, norm in (("eager", eager), ("compiled", compiled)):
                y = norm(x, g, b)
                t = ms(lambda: torch.autograd.grad(y, (x, g, b), dy, retain_graph=True), calls=5)
                forward = ms(lambda: norm(x, g, b), calls=5)
                moved = 3 * x.numel() * x.element_size()
                line(layer_norm=how, rows=size[0], width=width, dtype=str(kind), backward_ms=t, backward_gb_s=round(moved / t[0] / 1e6), forward_ms=forward)


def attention():
    for batch, heads, context, head in ((16, 12, 1024, 64), (8, 25, 1024, 64)):
        if DRY:
            batch, heads, context = 1, 2, 64
        q, k, v = (torch.randn(batch, heads, context, head, device=DEVICE, dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
        dy = torch.randn(batch, heads, context, head, device=DEVICE, dtype=torch.bfloat16)
        flop = 4 * batch * heads * context * context * head / 2  # causal: half the square
        for name, backend in (("flash", SDPBackend.FLASH_ATTENTION), ("cudnn", SDPBackend.CUDNN_ATTENTION)):
            for deterministic in (False, True):
                torch.use_deterministic_algorithms(deterministic)
                try:
                    with sdpa_kernel(SDPBackend.MATH if DRY else backend):
                        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
                        run = lambda: torch.autograd.grad(y, (q, k, v), dy, retain_graph=True)
                        forward = ms(lambda: functional.scaled_dot_product_attention(q, k, v, is_causal=True), calls=10)
                        backward = ms(run, calls=10)
                        first = [t.clone() for t in run()]
                        same = all(all(torch.equal(a, b) for a, b in zip(first, run())) for _ in range(20))
                    line(attention=name, shape=[batch, heads, context, head], deterministic_asked=deterministic, forward_ms=forward,
                         forward_tflop_s=round(flop / forward[0] / 1e9), backward_ms=backward, backward_tflop_s=round(2.5 * flop / backward[0] / 1e9),
                         backward_repeats_20_equal=same)
                except RuntimeError as error:
                    line(attention=name, deterministic_asked=deterministic, error=str(error).splitlines()[0][:200])
    torch.use_deterministic_algorithms(False)


class Gpt(torch.nn.Module):
    """GPT-2: pre-norm, learned positions, tied head of 50304 rows, tanh GELU, no dropout."""

    def __init__(self, layers, heads, width, vocabulary=50304, context=1024):
        super().__init__()
        self.heads = heads
        self.tokens, self.positions = torch.nn.Embedding(vocabulary, width), torch.nn.Embedding(context, width)
        linear, norm = torch.nn.Linear, torch.nn.LayerNorm
        self.blocks = torch.nn.ModuleList(
            torch.nn.ModuleDict(dict(norm1=norm(width), qkv=linear(width, 3 * width), projection=linear(width, width), norm2=norm(width),
                                     up=linear(width, 4 * width), down=linear(4 * width, width))) for _ in range(layers))
        self.norm = norm(width)
        for p in self.parameters():
            if p.dim() > 1:
                torch.nn.init.normal_(p, std=0.02)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            batch, context, width = x.shape
            q, k, v = block["qkv"](block["norm1"](x)).view(batch, context, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + block["projection"](y.transpose(1, 2).reshape(batch, context, width))
            x = x + block["down"](functional.gelu(block["up"](block["norm2"](x)), approximate="tanh"))
        logits = functional.linear(self.norm(x), self.tokens.weight)
        return functional.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))


def step():
    """Forward, backward, clip, fused AdamW in bf16 autocast over fp32 weights, T = 1024, one micro-batch."""
    torch.set_float32_matmul_precision("high")
    shape = dict(layers=2, heads=2, width=64, vocabulary=128) if DRY else GPT2["124M"]
    context = 32 if DRY else 1024
    for batch in (2,) if DRY else (32, 64, 16):
        torch.manual_seed(0)
        torch.compiler.reset()
        model = optimizer = None
        try:
            model = Gpt(**shape).to(DEVICE)
            optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
            compiled = torch.compile(model, dynamic=False)
            vocabulary = model.tokens.num_embeddings
            tokens = torch.randint(0, min(vocabulary, 50257), (batch, context + 1), device=DEVICE)
            loss = None

            def once():
                nonlocal loss
                with torch.autocast(DEVICE, dtype=torch.bfloat16):
                    loss = compiled(tokens[:, :-1], tokens[:, 1:])
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)

            begin = time.perf_counter()
            once()
            loss.item()
            started = time.perf_counter() - begin
            if not DRY:
                torch.cuda.reset_peak_memory_stats()
            t = ms(once, rounds=20, warm_up=5)
            peak = 0 if DRY else torch.cuda.max_memory_allocated()
            reserved = 0 if DRY else torch.cuda.max_memory_reserved()
            line(step="GPT-2 124M, torch.compile, bf16 autocast, fused AdamW, clip", batch=batch, context=context, ms=t,
                 tokens_s=round(batch * context / t[0] * 1e3), peak_bytes=peak, reserved_bytes=reserved, compile_s=round(started, 1),
                 loss=round(loss.item(), 4))
        except torch.OutOfMemoryError as error:
            line(step="GPT-2 124M", batch=batch, error=str(error).splitlines()[0][:200])
        del model, optimizer
        if not DRY:
            torch.cuda.empty_cache()


if __name__ == "__main__":
    line(library="PyTorch", version=torch.__version__, cudnn=torch.backends.cudnn.version(), device=DEVICE if DRY else torch.cuda.get_device_name())
    {"matmul": matmul, "adamw": adamw, "layer_norm": layer_norm, "attention": attention, "step": step}[sys.argv[1]]()
