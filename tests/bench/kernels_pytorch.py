"""PyTorch's times for the kernels of kernel_limits, measured in turn with it: its rows, plus PyTorch's microseconds and own / PyTorch as speed.

Usage: kernels_pytorch.py build/release/tests/bench/kernel_limits [threads [rounds]]
A round is one run of kernel_limits, with three rounds of its own, and three samples of each kernel here. Prints medians over rounds, and the
ratios of each round's medians with minimum and maximum. PyTorch's attention backward has its softmax from forward, as ours has lse. Its outputs
are new arrays each time, as in its steps, except for AdamW and accumulate, which update in place.
"""

import statistics
import subprocess
import sys
import time

import torch
from torch.nn import functional

ROWS, WIDTH, HEADS, HEAD = 1024, 768, 12, 64


def backward_of(output, inputs):
    seed = torch.randn_like(output)
    return lambda: torch.autograd.grad(output, inputs, seed, retain_graph=True)


def forward_and_backward(name, call, inputs):
    def forward():
        with torch.no_grad():
            call(*inputs)

    first, _, rest = name.partition(" ")
    return {name: forward, f"{first}_backward {rest}".strip(): backward_of(call(*inputs), [x for x in inputs if x.requires_grad])}


def random(*shape):
    return torch.randn(*shape, requires_grad=True)


def adamw(shape):
    parameter = torch.nn.Parameter(torch.randn(shape))
    parameter.grad = torch.randn(shape)
    return torch.optim.AdamW([parameter], fused=True).step


def accumulate(shape):
    slot, value = torch.randn(shape), torch.randn(shape)
    return lambda: slot.add_(value)


def norm_of(shape):
    gradient = torch.randn(shape)
    return lambda: torch.linalg.vector_norm(gradient)


def all_kernels():
    kernels = {}
    for batch, context in ((4, 256), (1, 1024)):
        # Heads are adjacent in memory, as the product writes them.
        q, k, v = (random(batch, context, HEADS, HEAD) for _ in range(3))
        attention = lambda q, k, v: functional.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (q, k, v)), is_causal=True)
        kernels |= forward_and_backward(f"attention {batch} x {context}", attention, [q, k, v])
    layer_norm = lambda x, gamma, beta: functional.layer_norm(x, (WIDTH,), gamma, beta)
    kernels |= forward_and_backward("layer_norm", layer_norm, [random(ROWS, WIDTH), random(WIDTH), random(WIDTH)])
    rms_norm = lambda x, gamma: functional.rms_norm(x, (WIDTH,), gamma)
    kernels |= forward_and_backward("rms_norm", rms_norm, [random(ROWS, WIDTH), random(WIDTH)])
    kernels |= forward_and_backward("gelu", lambda x: functional.gelu(x, approximate="tanh"), [random(ROWS, 4 * WIDTH)])
    a, b = torch.randn(ROWS, WIDTH), torch.randn(ROWS, WIDTH)
    kernels["add"] = lambda: a + b
    for vocabulary in (8192, 50257):
        targets = torch.randint(vocabulary, (ROWS,))
        cross_entropy = lambda logits, targets=targets: functional.cross_entropy(logits, targets, reduction="sum")
        kernels |= forward_and_backward(f"cross_entropy {vocabulary}", cross_entropy, [random(ROWS, vocabulary)])
        table = random(vocabulary, WIDTH)
        kernels[f"embedding_backward {vocabulary}"] = backward_of(functional.embedding(targets, table), [table])
    for shape in ((4 * WIDTH, WIDTH), (50257, WIDTH)):
        at = f"{shape[0]} x {shape[1]}"
        kernels |= {f"adamw {at}": adamw(shape), f"gradient_norm {at}": norm_of(shape), f"accumulate {at}": accumulate(shape)}
    return kernels


def microseconds(call):
    repeats, start = 0, time.perf_counter()
    while repeats == 0 or time.perf_counter() - start < 4e-3:
        call()
        repeats += 1
    return (time.perf_counter() - start) / repeats * 1e6


def own_times(program, threads):
    lines = subprocess.run([program, str(threads), "3"], capture_output=True, text=True, check=True).stdout.splitlines()[2:]
    return {line[:28].strip(): float(line[28:].split()[0]) for line in lines}


def main():
    program, threads, rounds = sys.argv[1], int((sys.argv + ["2"])[2]), int((sys.argv + ["2", "7"])[3])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    kernels = all_kernels()
    own, peer = {name: [] for name in kernels}, {name: [] for name in kernels}
    for name, call in kernels.items():
        call()
    for _ in range(rounds):
        times = own_times(program, threads)
        for name, call in kernels.items():
            own[name].append(times[name])
            peer[name].append(statistics.median(microseconds(call) for _ in range(3)))
    print(f"PyTorch {torch.__version__}, {threads} threads, {rounds} rounds\n{'kernel':28s} {'own, us':>9s} {'PyTorch':>9s}  own / PyTorch")
    for name in kernels:
        ratios = [b / a for a, b in zip(own[name], peer[name])]
        middle = statistics.median
        print(f"{name:28s} {middle(own[name]):9.1f} {middle(peer[name]):9.1f}  {middle(ratios):5.2f} ({min(ratios):.2f}-{max(ratios):.2f})")


main()
