"""Checks the symbols of libscaletrain.so: it exports exactly the golden list, depends only on the C and C++ runtime, and uses nothing of
the runtime that passes memory across.

The list only grows: programs that use a removed symbol break. Those of the C ABI are the functions of tests/golden/abi.txt (abi.py).
usage: symbols.py LIBRARY GOLDEN [--needed]
"""
import re
import subprocess
import sys

RUNTIME = re.compile(r"(libc|libm|libstdc\+\+|libgcc_s|ld-linux[^.]*)\.so")
# Parts of the C++ runtime in which one side would allocate with its operator new and the other free with its own.
OWNING = re.compile(r"operator (new|delete)|basic_string|stream|std::filesystem|std::locale|std::pmr|std::random_device")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported(library):
    lines = (line.split() for line in output("nm", "-D", "--defined-only", library).splitlines())
    return sorted(fields[2].split("@")[0] for fields in lines if len(fields) == 3 and fields[1] != "A")


def needed(library):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", library))


def owning(library):
    return [name for name in output("nm", "-DC", "--undefined-only", library).splitlines() if OWNING.search(name)]


def main(library, golden, *options):
    with open(golden, encoding="utf-8") as file:
        listed = file.read().split()
    found = exported(library)
    wrong = [f"{s} is gone; programs may use it, so it must stay" for s in listed if s not in found]
    wrong += [f"{s} is exported and not listed; add it to the list, or hide it" for s in found if s not in listed]
    wrong += [f"{s} is not st_*" for s in found if not s.startswith("st_")]
    if listed != sorted(set(listed)):
        wrong.append(f"{golden} is not sorted, or lists a symbol twice")
    if "--needed" in options:
        wrong += [f"{name} is needed; only the C and C++ runtime may be" for name in needed(library) if not RUNTIME.match(name)]
        wrong += [f"{name.strip()} passes memory to or from the C++ runtime (capi/src/operator_new.cpp)" for name in owning(library)]
    print("\n".join(wrong) or f"{len(found)} symbols, as listed")
    return 1 if wrong or not found else 0


sys.exit(main(*sys.argv[1:]))
