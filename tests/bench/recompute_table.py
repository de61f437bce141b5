"""The savings and cost of recompute: one GPT, each policy in turn, round by round. Prints a Markdown table of planned bytes and of each
policy's fastest step, since other programs on the machine make steps slower, never faster.

Usage: recompute_table.py SCALETRAIN DATA [rounds [more options of scaletrain train]]
"""

import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

MODEL = "--layers 12 --width 128 --heads 4 --context 256 --batch 8 --validation 0".split()
POLICIES = ["none", "attention", "block.*.mlp", "blocks", "full"]
STEPS = 6  # per run; the first one warms up


def run(program, data, log, policy, more):
    """Bytes by arena, extra GFLOP per micro-batch, state, milliseconds of each step."""
    arguments = ["train", "--data", data, *MODEL, "--steps", STEPS, "--log", log, "--explain", "--recompute", policy, *more]
    out = subprocess.run([program, *map(str, arguments)], check=True, capture_output=True, text=True).stdout
    arenas = {name: int(size) for name, size in re.findall(r"(?m)^  (activations|stash|workspace) +(\d+)  ", out)}
    extra = re.search(r"(?m)^  total +\d+ +([0-9.]+) GFLOP", out)
    lines = [json.loads(line) for line in pathlib.Path(log).read_text().splitlines()]
    return arenas, float(extra.group(1)) if extra else 0.0, lines[-1]["state"], [line["milliseconds"] for line in lines if "milliseconds" in line][1:]


def main():
    program, data = sys.argv[1:3]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    best, plans = {policy: math.inf for policy in POLICIES}, {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for policy in POLICIES:
                arenas, extra, state, times = run(program, data, pathlib.Path(folder) / "log.jsonl", policy, sys.argv[4:])
                best[policy] = min(best[policy], *times)
                plans[policy] = arenas, extra, state
    if len({state for _, _, state in plans.values()}) != 1:
        sys.exit("the policies do not end in the same state")
    print("| policy | stash, MiB | activations, MiB | workspace, MiB | in all, MiB | extra GFLOP | step time, none = 1 |\n|---|---|---|---|---|---|---|")
    for policy, (arenas, extra, _) in plans.items():
        mebibytes = [arenas.get(name, 0) / 2**20 for name in ("stash", "activations", "workspace")]
        cells = [f"`{policy}`", *(f"{size:.1f}" for size in (*mebibytes, sum(mebibytes))), f"{extra:.2f}", f"{best[policy] / best['none']:.2f}"]
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
