"""Runs a sample in C and in Python: both must end well and print the same. Of sample 06, whose numbers are times, only that it ends well.

same_numbers.py C_PROGRAM PYTHON_FILE ARGUMENTS...
"""

import difflib
import subprocess
import sys


def printed(command: list[str]) -> list[str]:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{command[0]} {command[1] if len(command) > 1 else ''} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout.splitlines()


def main(program: str, file: str, *arguments: str) -> None:
    in_c, in_python = printed([program, *arguments]), printed([sys.executable, file, *arguments])
    if "06_tiled_gemm" not in program and in_c != in_python:
        sys.exit("\n".join(difflib.unified_diff(in_c, in_python, program, file, lineterm="")))


if __name__ == "__main__":
    main(*sys.argv[1:])
