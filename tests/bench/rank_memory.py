#!/usr/bin/python3
"""Resident memory of each rank compared with its plan (`scaletrain plan`), by configuration.

Resident is the peak that the system reports of a process, less that of the same run of the smallest model: the program, its libraries,
threads and transport. Ranks are processes, started here as by a launcher, or threads of one process, compared as a whole. Ends with 1 if a
configuration is more than 3 % away from its plan.

Usage: rank_memory.py PROGRAM TEXT [RECIPE OPTIONS]     PROGRAM: build/release/capi/scaletrain; TEXT: a file of some KiB
With options: these alone, on 1, 2 and 4 ranks.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "faults"))
from torchrun_environment import free_port  # noqa: E402

MIB = 1 << 20
MODEL = ["--vocabulary", "256", "--layers", "6", "--width", "512", "--heads", "8", "--context", "128"]
SMALLEST = ["--vocabulary", "256", "--layers", "4", "--width", "8", "--heads", "2", "--context", "8"]
RUN = ["--steps", "2", "--validation", "0", "--threads", "1"]
BF16 = ["--precision", "bf16"]
ROWS = [
    (1, []),
    (1, ["--batch", "8", "--recompute", "blocks"]),
    (1, [*BF16, "--offload", "gradients", "--offload-folder", "FOLDER"]),
    (2, []),
    (2, [*BF16, "--zero", "1", "--accumulate", "2"]),
    (4, [*BF16, "--zero", "2", "--accumulate", "2"]),
    (4, ["--zero", "3"]),
    (4, [*BF16, "--zero", "3", "--accumulate", "2"]),
    (2, ["--stages", "2", "--accumulate", "4", "--batch", "8"]),
    (4, [*BF16, "--stages", "2", "--accumulate", "4", "--zero", "1"]),
    (2, ["--tensor", "2", "--batch", "8"]),
    (4, [*BF16, "--tensor", "2", "--zero", "1"]),
    (2, [*BF16, "--zero", "1", "--offload", "optimizer", "--offload-folder", "FOLDER"]),
]


def peaks_of(commands, environments):
    """Peak resident bytes of each process."""
    processes = [subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL) for command, env in zip(commands, environments)]
    peaks = []
    for process in processes:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"rank_memory: {' '.join(map(str, process.args))} ended with {process.returncode}")
        peaks.append(used.ru_maxrss * 1024)
    return peaks


def resident_of(train, ranks, kind):
    """Peak bytes of each process."""
    if kind == "threads" or ranks == 1:
        return peaks_of([[*train, "--ranks", str(ranks)]], [os.environ])
    group = {"WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    each = [{**os.environ, **{k: str(v) for k, v in {**group, "RANK": r, "LOCAL_RANK": r}.items()}} for r in range(ranks)]
    return peaks_of([train] * ranks, each)


def planned_of(program, options, ranks, kind):
    """Planned bytes of each process, with what is in a file: the system counts its pages while they are mapped."""
    every = []
    for rank in range(ranks):
        world = ["--world" if kind == "processes" and ranks > 1 else "--ranks", str(ranks)]
        said = subprocess.run([program, "plan", *options, *world, "--rank", str(rank), "--json"], check=True, capture_output=True, text=True).stdout
        memory = json.loads(said)["memory"]
        every.append(memory["device_total"] + memory["host_total"] + memory["file_total"])
    return [sum(every)] if kind == "threads" else every


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    program, text, options = sys.argv[1], sys.argv[2], sys.argv[3:]
    is_within, smallest = True, {}
    print("| ranks | options | planned, MiB | resident, MiB | resident / planned |\n|---|---|---|---|---|")
    for ranks, recipe in [(ranks, options) for ranks in (1, 2, 4)] if options else ROWS:
        for kind in ("processes", "threads") if ranks > 1 else ("processes",):
            with tempfile.TemporaryDirectory() as folder:
                own = [folder if word == "FOLDER" else word for word in recipe]
                train = [program, "train", "--data", text, *RUN]
                base = resident_of([*train, *SMALLEST, *own], ranks, kind)
                planned = planned_of(program, [*MODEL, "--threads", "1", *own], ranks, kind)
                rows = [(p, r - b) for p, r, b in zip(planned, resident_of([*train, *MODEL, *own], ranks, kind), base)]
            plan, resident = max(rows, key=lambda row: abs(row[1] / row[0] - 1))
            is_within = is_within and abs(resident / plan - 1) <= 0.03
            print(f"| {ranks} {kind} | `{' '.join(recipe)}` | {plan / MIB:.1f} | {resident / MIB:.1f} | {resident / plan:.3f} |", flush=True)
    sys.exit(0 if is_within else 1)


if __name__ == "__main__":
    main()
