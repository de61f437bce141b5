"""Runs a sample in C and in another language: both must end well and print the same. Of sample 06, whose numbers are times, only that it ends well.

same_numbers.py [--launch SCALETRAIN] C_PROGRAM COMMAND... -- ARGUMENTS...     the arguments are both programs'; --launch: two processes of each
"""

import difflib
import subprocess
import sys


def printed(command: list[str]) -> list[str]:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout.splitlines()


def main(*given: str) -> None:
    words = list(given)
    launch: list[str] = []
    if words[0] == "--launch":
        launch = [words[1], "launch", "-n", "2", "--"]
        del words[:2]
    program = words.pop(0)
    end = words.index("--")
    command, arguments = words[:end], words[end + 1 :]
    in_c, elsewhere = printed([*launch, program, *arguments]), printed([*launch, *command, *arguments])
    if "06_tiled_gemm" not in program and in_c != elsewhere:
        sys.exit("\n".join(difflib.unified_diff(in_c, elsewhere, program, " ".join(command), lineterm="")))


if __name__ == "__main__":
    main(*sys.argv[1:])
