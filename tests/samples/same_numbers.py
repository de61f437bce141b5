"""Runs a sample: keeps its output, or compares it with the output of its twin in C. It must succeed in either case.

same_numbers.py keep FILE COMMAND...
same_numbers.py like FILE COMMAND...
"""

import difflib
import pathlib
import subprocess
import sys


def main(what: str, kept: str, *command: str) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    print(done.stdout, end="")
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}")
    file = pathlib.Path(kept)
    if what == "keep":
        file.write_text(done.stdout)
    elif done.stdout != file.read_text():
        lines = difflib.unified_diff(file.read_text().splitlines(), done.stdout.splitlines(), "in C", " ".join(command), lineterm="")
        sys.exit("\n".join(lines))


if __name__ == "__main__":
    main(*sys.argv[1:])
