#!/usr/bin/python3
"""Compares what each kernel takes of a device (NAME.taken, which nvcc wrote) with the table in the repository; no kernel may spill registers.

usage: kernel_gate.py TABLE COMPILER FOLDER [--write]      COMPILER: "V13.0.88"; --write makes the table anew

Registers depend on the compiler: they are compared for the one that the table names; shared memory, stack and spills for every one.
"""
import pathlib
import re
import subprocess
import sys

BEGIN = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")
HEAD = "# What kernels take by {}: registers of a thread on each architecture; bytes of shared memory; bytes of stack. kernel_gate.py --write\n"
ARCHITECTURES = ("sm_80", "sm_90a", "sm_100", "sm_120")


def read_taken(files):
    """{kernel: {architecture: (registers, shared, stack, spilled)}}"""
    taken, at, frame = {}, None, None
    for line in (line for file in files for line in file.read_text().splitlines()):
        if found := BEGIN.search(line):
            at = found.groups()
        elif found := FRAME.search(line):
            frame = tuple(map(int, found.groups()))
        elif found := USED.search(line):
            shared = SHARED.search(line)
            taken.setdefault(at[0], {})[at[1]] = (int(found[1]), int(shared[1]) if shared else 0, frame[0], frame[1] + frame[2])
    names = subprocess.run(["c++filt"], input="\n".join(taken), capture_output=True, text=True, check=True).stdout.splitlines()
    short = [re.sub(r"^void |st::cuda::|\(.*", "", name) for name in names]
    return dict(sorted(zip(short, taken.values())))


def row(name, by_architecture, registers=True):
    columns = [f"{architecture} {by_architecture[architecture][0] if registers else '-'}" for architecture in ARCHITECTURES]
    shared, stack = (max(taken[i] for taken in by_architecture.values()) for i in (1, 2))
    return "  ".join([f"{name:<40}", *columns, f"shared {shared}", f"stack {stack}"])


def main(table, compiler, folder, *options):
    taken = read_taken(sorted(pathlib.Path(folder).glob("*.taken")))
    wrong = [f"{name} has no code for {a}" for name, rows in taken.items() for a in ARCHITECTURES if a not in rows]
    if not taken or wrong:
        print("\n".join(wrong) or f"{folder} has no kernels; build the target cuda_kernels")
        return 1
    wrong += [f"{name} spills {rows[a][3]} bytes on {a}" for name, rows in taken.items() for a in ARCHITECTURES if rows[a][3]]
    if "--write" in options:
        pathlib.Path(table).write_text(HEAD.format(compiler) + "".join(f"{row(*item)}\n" for item in taken.items()))
    lines = pathlib.Path(table).read_text().splitlines()
    same = f" by {compiler}:" in lines[0]
    expected = lines[1:] if same else [re.sub(r"(sm_\w+) \d+", r"\1 -", line) for line in lines[1:]]
    found = [row(*item, registers=same) for item in taken.items()]
    wrong += [f"the table has not: {line}" for line in found if line not in expected]
    wrong += [f"the table has, and the kernels have not: {line}" for line in expected if line not in found]
    print("\n".join(wrong) or f"{len(found)} kernels take what the table says" + ("" if same else f", registers not compared: {compiler}"))
    return 1 if wrong else 0


sys.exit(main(*sys.argv[1:]))
