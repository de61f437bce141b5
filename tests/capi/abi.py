"""Checks whether programs built against earlier headers still run: abidiff of two builds of the public ABI, and a test of the check.

abidiff reads function types from debug information, so each set of headers becomes a small library in which every exported function
has its declared type and an empty body. Before the first release tag the base is the golden copy of the headers' types in
tests/golden/abi.xml; for an intended change, rewrite it with --write and say in the commit which programs break. abidiff reports
additions with status 4, like real breaks, so every status but 0 is a failure.
usage: abi.py HEADERS GOLDEN [--write] | abi.py HEADERS --self-test
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

DECLARATION = re.compile(r"ST_API\s+([^;{}]*?)\b(st_\w+)\(([^;]*?)\);", re.S)


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def library_of(headers, out):
    """A library with every function that the headers declare, compiled with debug information."""
    source = ["#include <scaletrain/scaletrain.h>"]
    names = set()
    for header in sorted(headers.glob("scaletrain/*.h")):
        for result, name, parameters in DECLARATION.findall(without_comments(header.read_text(encoding="utf-8"))):
            if name in names:
                continue
            names.add(name)
            result = " ".join(result.split())
            source.append(f"{result} {name}({' '.join(parameters.split())}) {{ return 0; }}")
    if not names:
        sys.exit(f"abi.py: no function is declared in {headers}")
    file = out.with_suffix(".c")
    file.write_text("\n".join(source) + "\n", encoding="utf-8")
    subprocess.run(["cc", "-std=gnu11", "-g", "-O0", "-fPIC", "-shared", "-fvisibility=hidden", "-w", "-DST_BUILDING", "-I", str(headers),
                    "-o", str(out), str(file)], check=True)
    return out


def difference(before, after):
    """abidiff's status and output; before is a library or a dump."""
    run = subprocess.run(["abidiff", "--no-default-suppression", str(before), str(after)], capture_output=True, text=True, check=False)
    return run.returncode, run.stdout + run.stderr


def self_test(headers, folder):
    """Must reject a changed field, a removed function and a narrower parameter, and accept unchanged headers."""
    base = library_of(headers, folder / "base.so")
    samples = {
        "the same headers": (None, True),
        "a field in the middle": (("context.h", "int64_t memory_limit;", "int64_t memory_limit, another;"), False),
        "a widened field": (("context.h", "int32_t threads;", "int64_t threads;"), False),
        "a removed function": (("context.h", "ST_API st_status st_context_destroy(st_context* context);", ""), False),
        "a narrower parameter": (("trainer.h", "st_trainer_run(st_trainer* trainer, int64_t steps", "st_trainer_run(st_trainer* trainer, int32_t steps"), False),
        "a callback's parameter": (("context.h", "(*st_free_fn)(void* user,", "(*st_free_fn)(int user,"), False),
    }
    failures = 0
    for number, (name, (change, fits)) in enumerate(samples.items()):
        changed = folder / f"sample{number}"
        shutil.copytree(headers, changed)
        if change is not None:
            file, old, new = change
            path = changed / "scaletrain" / file
            text = path.read_text(encoding="utf-8")
            if old not in text:
                sys.exit(f"abi.py: {file} has no \"{old}\" for the sample \"{name}\" any more; choose another")
            path.write_text(text.replace(old, new), encoding="utf-8")
        status, words = difference(base, library_of(changed, folder / f"sample{number}.so"))
        if (status == 0) != fits:
            failures += 1
            print(f"{name}: abidiff says {status}\n{words}", file=sys.stderr)
    print(f"{len(samples)} samples, {failures} wrong")
    return 1 if failures else 0


def main(headers, *arguments):
    headers = pathlib.Path(headers)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        if arguments == ("--self-test",):
            return self_test(headers, folder)
        golden = pathlib.Path(arguments[0])
        library = library_of(headers, folder / "libscaletrain.so")
        if arguments[1:] == ("--write",):
            subprocess.run(["abidw", "--no-show-locs", "--no-corpus-path", "--no-comp-dir-path", "--no-elf-needed", "--short-locs",
                            "--exported-interfaces-only", "--out-file", str(golden), str(library)], check=True)
            return 0
        status, words = difference(golden, library)
        if status != 0:
            print(f"The headers differ from {golden}; if that is meant: abi.py HEADERS GOLDEN --write\n{words}", file=sys.stderr)
        return 1 if status else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
