"""Runs a sample: keeps its output, or compares it with the output of its twin in C. It must succeed in any case.

same_numbers.py keep FILE COMMAND...
same_numbers.py like FILE COMMAND...   the same text
same_numbers.py near FILE COMMAND...   on another device: the same text but for numbers with a fraction, which differ by 0.1 % (a run of some
                                       steps in another order of sums) or by 2 of the last digit
"""

import difflib
import pathlib
import re
import subprocess
import sys

FRACTION = re.compile(r"-?\d+\.\d+(?:e[-+]\d+)?")


def is_near(here: str, there: str) -> bool:
    mantissa, _, exponent = there.partition("e")
    last_digit = 10.0 ** (int(exponent or 0) - len(mantissa.split(".")[1]))
    return abs(float(here) - float(there)) <= max(1e-3 * abs(float(there)), 2.5 * last_digit)


def are_near(said: str, kept: str) -> bool:
    here, there = FRACTION.findall(said), FRACTION.findall(kept)
    return FRACTION.sub("#", said) == FRACTION.sub("#", kept) and all(map(is_near, here, there))


def main(what: str, kept: str, *command: str) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    print(done.stdout, end="")
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}")
    file = pathlib.Path(kept)
    if what == "keep":
        file.write_text(done.stdout)
    elif not (are_near(done.stdout, file.read_text()) if what == "near" else done.stdout == file.read_text()):
        lines = difflib.unified_diff(file.read_text().splitlines(), done.stdout.splitlines(), "in C", " ".join(command), lineterm="")
        sys.exit("\n".join(lines))


if __name__ == "__main__":
    main(*sys.argv[1:])
