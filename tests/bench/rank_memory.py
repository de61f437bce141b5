#!/usr/bin/python3
"""Resident memory of each rank compared with its plan: at most 1.03 times the plan plus 64 MiB (the program, its libraries, threads).

Ranks are processes, started here as by a launcher; the system reports each one's peak. The plan is memory_bytes in rank 0's log: the plan's
buffers and those of the data. A run with threads as ranks is compared as a whole with its own plan.

Usage: rank_memory.py PROGRAM TEXT [RECIPE OPTIONS]     PROGRAM: build/release/capi/scaletrain; TEXT: a file of some KiB
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
MODEL = ["--layers", "6", "--width", "512", "--heads", "8", "--context", "256", "--batch", "1", "--steps", "3", "--validation", "0", "--threads", "1"]


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


def planned_of(log):
    return max(json.loads(line).get("memory_bytes", 0) for line in log.read_text().splitlines())


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    program, text, options = sys.argv[1], sys.argv[2], sys.argv[3:]
    is_within = True
    print("ranks              planned, MiB   resident, MiB   (resident - 64 MiB) / planned")
    for ranks in (1, 2, 4):
        for kind in ("processes", "threads"):
            if (ranks, kind) == (1, "threads"):
                continue
            with tempfile.TemporaryDirectory() as folder:
                log = Path(folder) / "log.jsonl"
                command = [program, "train", "--data", text, *MODEL, "--log", log, *options]
                if kind == "threads":
                    peaks = peaks_of([[*command, "--ranks", str(ranks)]], [os.environ])
                else:
                    group = {"WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
                    each = [{**os.environ, **{k: str(v) for k, v in {**group, "RANK": r, "LOCAL_RANK": r}.items()}} for r in range(ranks)]
                    peaks = peaks_of([command] * ranks, each)
                planned, resident = planned_of(log), max(peaks)
                share = (resident - 64 * MIB) / planned
                is_within = is_within and share <= 1.03
                print(f"{ranks} {kind:<14} {planned / MIB:14.1f} {resident / MIB:15.1f}   {share:.3f}", flush=True)
    sys.exit(0 if is_within else 1)


main()
