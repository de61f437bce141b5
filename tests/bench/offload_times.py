#!/usr/bin/python3
"""Step times and memory of a GPT whose optimizer state, or also parameters, is in a file, in turn with one that has everything in memory.

Usage: offload_times.py PROGRAM TEXT FOLDER [ROUNDS] [TRAIN OPTIONS]     PROGRAM: build/release/capi/scaletrain; FOLDER: on a disk
"""

import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

MODEL = ["--layers", "4", "--width", "768", "--heads", "12", "--context", "64", "--batch", "1", "--steps", "12", "--validation", "0"]
MIB = 1 << 20


def measured(program, text, options):
    """Milliseconds of each step except the first two, and the peaks of the process's memory and of its file pages."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.jsonl"
        process = subprocess.Popen([program, "train", "--data", text, *MODEL, "--log", log, *options], stdout=subprocess.DEVNULL)
        most = {"RssAnon": 0, "RssFile": 0}
        while process.poll() is None:
            try:
                status = Path(f"/proc/{process.pid}/status").read_text()
            except OSError:
                continue
            for name in most:
                found = re.search(rf"{name}:\s+(\d+) kB", status)
                most[name] = max(most[name], int(found[1]) * 1024 if found else 0)
        if process.returncode != 0:
            sys.exit(f"offload_times: {options} ended with {process.returncode}")
        lines = [json.loads(line) for line in log.read_text().splitlines()]
    times = [line["milliseconds"] for line in lines if "milliseconds" in line][2:]
    return times, most, lines[-1].get("state")


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    program, text, folder = sys.argv[1:4]
    rounds, options = int(sys.argv[4]) if len(sys.argv) > 4 else 3, sys.argv[5:]
    kinds = {"none": [], **{what: ["--offload", what, "--offload-folder", folder] for what in ("optimizer", "parameters")}}
    times, most, states = {kind: [] for kind in kinds}, {}, set()
    for _ in range(rounds):
        for kind, more in kinds.items():
            taken, most[kind], state = measured(program, text, [*options, *more])
            times[kind] += taken
            states.add(state)
    if len(states) != 1:
        sys.exit(f"offload_times: the states differ: {states}")
    base = statistics.median(times["none"])
    print("offload      step, ms, median (fastest)   of none   memory, MiB   files' pages, MiB")
    for kind in kinds:
        median = statistics.median(times[kind])
        anonymous, file = (most[kind][name] / MIB for name in ("RssAnon", "RssFile"))
        print(f"{kind:<12} {median:10.1f} ({min(times[kind]):.1f}) {median / base:16.3f} {anonymous:13.1f} {file:14.1f}")


main()
