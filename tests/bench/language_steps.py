"""The cost of a training step from another language, compared with the same step from C: two processes in turn.

language_steps.py [--rounds R] [--steps N] COMMAND...

    .venv/bin/python tests/bench/language_steps.py env PYTHONPATH=build/release/python .venv/bin/python tests/bench/language_step.py

COMMAND is a twin of language_step.c (built by `cmake --build --preset release --target measurements`). Prints the median over rounds of its time
relative to C's, and the middle half of the rounds; the first two rounds warm up.
"""

import argparse
import pathlib
import statistics
import subprocess

C = pathlib.Path(__file__).parents[2] / "build/release/tests/bench/language_step"


class Side:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def seconds(self, steps):
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.process.args} ended with {self.process.wait()}")
        return int(line) / 1e9

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=31)
    arguments.add_argument("--steps", type=int, default=100)
    arguments.add_argument("command", nargs=argparse.REMAINDER)
    given = arguments.parse_args()
    c, other = Side([C]), Side(given.command)
    ratios, times = [], []
    for round_number in range(given.rounds + 2):
        # The order alternates, so that a changing clock affects both sides.
        sides = (c, other) if round_number % 2 == 0 else (other, c)
        took = {side: side.seconds(given.steps) for side in sides}
        if round_number >= 2:
            ratios.append(took[other] / took[c])
            times.append(took[c] / given.steps * 1e6)
    for side in (c, other):
        side.end()
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"{middle:.4f} of C's time ({low:.4f} to {high:.4f}); C's step takes {statistics.median(times):.0f} us; {given.rounds} rounds of {given.steps}")


if __name__ == "__main__":
    main()
