"""Checks memory with valgrind: the library leaks nothing, reads no uninitialised memory and uses no freed memory; a deliberate leak is detected.

leaks.py VALGRIND MONO LeakTrial.exe"""

import collections
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

OURS = "libscaletrain"
NOBODYS = ("vgpreload", "libc.so", "libstdc++", "libgcc")  # they allocate for their callers


def errors_of_ours(command: list[str]) -> collections.Counter:
    """Kind and innermost functions of the errors that valgrind reports in the library or its wrapper. Errors in Mono do not count, even in
    callbacks of the library."""
    with tempfile.TemporaryDirectory() as folder:
        found = pathlib.Path(folder) / "valgrind.xml"
        valgrind, *program = command
        options = ["--leak-check=full", "--show-leak-kinds=definite", "--num-callers=40", "--smc-check=all-non-file", "--xml=yes", f"--xml-file={found}"]
        environment = {name: value for name, value in os.environ.items() if name != "SCALETRAIN_ISA"}  # valgrind's processor has no AVX-512
        done = subprocess.run([valgrind, *options, *program], env=environment, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0 or "live handles: " not in done.stdout:
            sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}")
        print(done.stdout, end="")
        ours: collections.Counter = collections.Counter()
        for error in xml.parse(found).getroot().findall("error"):
            frames = [(frame.findtext("fn") or "?", pathlib.Path(frame.findtext("obj") or "").name) for frame in error.iter("frame")]
            whose = next((name for _, name in frames if not name.startswith(NOBODYS)), "")
            if whose.startswith(OURS):
                ours[error.findtext("kind"), " < ".join(function for function, _ in frames[:8])] += 1
        return ours


def main(valgrind: str, mono: str, trial: str) -> None:
    found = errors_of_ours([valgrind, mono, trial])
    meant = [(kind, where) for kind, where in found if kind == "Leak_DefinitelyLost" and "new_Schedule" in where]
    if not meant:
        sys.exit(f"the three schedules that were leaked on purpose were not detected: {found}")
    if len(meant) < len(found):
        sys.exit("\n".join(f"{count} x {kind}: {where}" for (kind, where), count in found.items() if (kind, where) not in meant))


if __name__ == "__main__":
    main(*sys.argv[1:])
