#!/usr/bin/python3
"""Compares what each kernel takes of a device (NAME.taken, which nvcc wrote) and which machine instructions it has (NAME.o) with the table in
the repository. No kernel may spill registers, and none but LOCAL may use local memory.

usage: kernel_gate.py TABLE COMPILER CUOBJDUMP FOLDER [--write]      COMPILER: "V13.0.88"; --write makes the table anew

Registers and counts of instructions depend on the compiler: they are compared for the one that the table names; for every one shared memory,
stack, spills, and which of the counted instructions a kernel has at all. CUOBJDUMP calls nvdisasm, which lies in its folder or on PATH.
"""
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

BEGIN = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")
HEAD = ("# What kernels take by {}: registers of a thread on each architecture; bytes of shared memory; bytes of stack; machine instructions, "
        "sm_80/sm_90a. kernel_gate.py --write\n")
ARCHITECTURES = ("sm_80", "sm_90a")
# Instructions that are counted: products of tensor cores, their loads from shared memory, asynchronous copies to it, local memory.
COUNTED = ("HMMA", "LDSM", "LDGSTS", "LDL", "STL")
FUNCTION = re.compile(r"\bFunction : (\w+)")
INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P[0-9T]+ )?(\w+)")
LOCAL = {"make_rope_table<float>", "make_rope_table<double>"}  # CUDA's sine of large angles keeps its words of pi there


def short_names(mangled):
    names = subprocess.run(["c++filt"], input="\n".join(mangled), capture_output=True, text=True, check=True).stdout.splitlines()
    return [re.sub(r"^void |st::cuda::|\(.*", "", name) for name in names]


def count_instructions(cuobjdump, objects):
    """{kernel: {architecture: {instruction: count}}}"""
    path = os.pathsep.join([str(pathlib.Path(cuobjdump).parent), os.environ["PATH"]])

    def count(task):
        architecture, item = task
        kernels, counts = [], collections.Counter()
        with subprocess.Popen([cuobjdump, "-sass", "-arch", architecture, str(item)], stdout=subprocess.PIPE, text=True, env={**os.environ, "PATH": path}) as listing:
            for line in listing.stdout:
                if found := INSTRUCTION.match(line):
                    counts[found[1]] += 1
                elif found := FUNCTION.search(line):
                    counts = collections.Counter()
                    kernels.append((found[1], counts))
        if listing.returncode or not kernels:
            sys.exit(f"{cuobjdump} gave no machine code of {item.name} for {architecture}")
        return architecture, kernels

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(count, [(a, item) for item in objects for a in ARCHITECTURES]))
    mangled = sorted({kernel for _, kernels in found for kernel, _ in kernels})
    short = dict(zip(mangled, short_names(mangled)))
    counted = collections.defaultdict(dict)
    for architecture, kernels in found:
        for kernel, counts in kernels:
            counted[short[kernel]][architecture] = counts
    return counted


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
    return dict(sorted(zip(short_names(taken), taken.values())))


def row(name, by_architecture, counts):
    columns = [f"{architecture} {by_architecture[architecture][0]}" for architecture in ARCHITECTURES]
    shared, stack = (max(taken[i] for taken in by_architecture.values()) for i in (1, 2))
    instructions = [f"{i} {'/'.join(str(counts[a][i]) for a in ARCHITECTURES)}" for i in COUNTED if any(counts[a][i] for a in ARCHITECTURES)]
    return "  ".join([f"{name:<40}", *columns, f"shared {shared}", f"stack {stack}", *instructions])


def without_compiler(line):
    """The same row for another compiler: no registers, and of instructions their names."""
    return re.sub(r"([A-Z]+) \d+/\d+", r"\1", re.sub(r"(sm_\w+) \d+", r"\1 -", line))


def main(table, compiler, cuobjdump, folder, *options):
    if not pathlib.Path(cuobjdump).exists():
        sys.exit("cuobjdump is missing, which counts instructions: tests/setup installs it into .venv")
    taken = read_taken(sorted(pathlib.Path(folder).glob("*.taken")))
    wrong = [f"{name} has no code for {a}" for name, rows in taken.items() for a in ARCHITECTURES if a not in rows]
    if not taken or wrong:
        print("\n".join(wrong) or f"{folder} has no kernels; build the target cuda_kernels")
        return 1
    wrong += [f"{name} spills {rows[a][3]} bytes on {a}" for name, rows in taken.items() for a in rows if rows[a][3]]
    counted = count_instructions(cuobjdump, sorted(pathlib.Path(folder).glob("*.o")))
    wrong += [f"{name} uses local memory on {a}" for name, rows in counted.items() if name not in LOCAL for a in ARCHITECTURES
              if rows[a]["LDL"] + rows[a]["STL"]]
    rows = [row(name, taken[name], counted[name]) for name in taken]
    if "--write" in options:
        pathlib.Path(table).write_text(HEAD.format(compiler) + "".join(f"{line}\n" for line in rows))
    lines = pathlib.Path(table).read_text().splitlines()
    same = f" by {compiler}:" in lines[0]
    expected, found = [[line if same else without_compiler(line) for line in side] for side in (lines[1:], rows)]
    wrong += [f"the table has not: {line}" for line in found if line not in expected]
    wrong += [f"the table has, and the kernels have not: {line}" for line in expected if line not in found]
    print("\n".join(wrong) or f"{len(found)} kernels take what the table says" + ("" if same else f", registers and counts not compared: {compiler}"))
    return 1 if wrong else 0


sys.exit(main(*sys.argv[1:]))
