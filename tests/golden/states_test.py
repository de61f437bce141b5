"""Checks that short trainings end with the states, and execute the plans, that states.json records for this machine's kernel classes.

Usage: states_test.py PROGRAM [--record]

PROGRAM is golden_states. --record writes its output into states.json for the kernel classes of this machine and keeps the others.
A changed state needs a line in CHANGELOG.md with the reason.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

RECORDED = Path(__file__).with_name("states.json")
CLASSES = ["portable", "avx2", "avx512", "avx512_bf16", "amx_bf16"]
LACKING = 77  # the program's status if the processor lacks a class


def main():
    program = sys.argv[1]
    recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    now = {name: trainings for name in CLASSES if (trainings := trainings_of(program, name))}
    if "--record" in sys.argv:
        return RECORDED.write_text(text_of({**recorded, **now}))
    moved = [
        f"{kernel_class}, {training}: {what} was {before}, is {after}"
        for kernel_class in now.keys() & recorded.keys()
        for training in now[kernel_class].keys() | recorded[kernel_class].keys()
        for what, before, after in zip(("state", "plan", "instructions"), *(digests(of, kernel_class, training) for of in (recorded, now)))
        if before != after
    ]
    for name in CLASSES:
        print(f"{name}: {'not on this machine' if name not in now else 'not recorded' if name not in recorded else 'compared'}")
    print("\n".join(sorted(moved)))
    if moved or not now.keys() & recorded.keys():
        sys.exit("golden states: fail")


def text_of(recorded):
    """JSON, one line per training."""
    lines = lambda trainings: ",\n".join(f"  {json.dumps(name)}: {json.dumps(digests)}" for name, digests in trainings.items())
    return "{\n" + ",\n".join(f" {json.dumps(name)}: {{\n{lines(trainings)}\n }}" for name, trainings in recorded.items()) + "\n}\n"


def digests(of, kernel_class, training):
    return of[kernel_class].get(training, ["none", "none", "none"])


def trainings_of(program, kernel_class):
    ran = subprocess.run([program], env={**os.environ, "SCALETRAIN_ISA": kernel_class}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if ran.returncode == LACKING:
        return None
    if ran.returncode:
        sys.exit(f"golden states: {kernel_class}: {ran.stderr.decode()}")
    return json.loads(ran.stdout)["trainings"]


if __name__ == "__main__":
    main()
