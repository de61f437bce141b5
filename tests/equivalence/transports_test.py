"""All transports give the same state: threads of one process, processes over shared memory, Gloo and MPI (traps.md, T7).

    transports_test.py SCALETRAIN PLUGIN_FOLDER [--few]                                a covering selection, as in CI; --few: one run per transport
    transports_test.py SCALETRAIN PLUGIN_FOLDER --product [--transport T..] [--ranks N..] [--zero Z..] [--schedule S..] [--tensor T..]
                                                                                       all combinations, by hand

With reduce micro all runs of a precision and tensor degree must end in the state of one data rank; with reduce step, all runs of a
precision, degree and number of data ranks in the state of as many threads. Losses and norms of every step are compared, too. The covering selection also tests state in a file (T9).
"""

import argparse
import collections
import itertools
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from command_line import PROGRAM, TEXT, log_lines  # noqa: E402
from transports import KEPT, MPIRUN, why_not  # noqa: E402

Run = collections.namedtuple("Run", "transport ranks zero bucket overlap precision reduce offload schedule tensor",
                            defaults=["none", "none", 1])
EVERYTHING = Run(transport=("threads", "local", "gloo", "mpi"), ranks=(1, 2, 3, 4, 5, 8), zero=(0, 1, 2, 3), bucket=(4 << 10, 1 << 20, 256 << 20),
                 overlap=("on", "off"), precision=("fp32", "bf16"), reduce=("micro", "step"), offload=("none",), schedule=("none",), tensor=(1,))
SELECTED = EVERYTHING._replace(ranks=(2, 3, 5), offload=("none", "optimizer", "parameters"), schedule=("none", "1f1b", "zb-v"),
                               tensor=(1, 2))

FEW = "--few" in sys.argv and sys.argv.remove("--few") is None

# 1.5 MB of gradients, which each bucket size divides differently; 8 micro-batches, which 3 and 5 ranks cannot share evenly.
MODEL = ["--layers", "2", "--width", "120", "--heads", "2", "--context", "6", "--batch", "1", "--threads", "1", "--micro-batches", "8",
         "--dropout", "0.1", "--warmup", "0", "--validation", "0", "--steps", "2"]


def covering(values):
    """A small set of combinations with every pair of values of two options; among equally good ones, those with the fewest ranks."""
    def pairs(run):
        return set(itertools.combinations(enumerate(run), 2))

    runs = sorted(map(Run._make, itertools.product(*values)), key=lambda run: run.ranks)
    pairs_of = {run: pairs(run) for run in runs}
    missing = set().union(*pairs_of.values())
    while missing:
        best = max(pairs_of, key=lambda run: len(missing & pairs_of[run]))
        missing -= pairs_of[best]
        yield best


class Training:
    """Makes runs in a folder, and knows the expected result of each."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        (self.folder / "text.txt").write_text(TEXT[:2000], encoding="ascii")
        self.expected = {}

    def end_of(self, run):
        """The losses, norms and state of a run, or the error as text."""
        log = self.folder / "log.jsonl"
        train = [PROGRAM, "train", "--data", self.folder / "text.txt", "--log", log, *MODEL]
        for option in ("zero", "bucket", "overlap", "precision", "reduce", "offload"):
            train += [f"--{option}", getattr(run, option)]
        if run.offload != "none":
            train += ["--offload-folder", self.folder]
        if run.schedule != "none":
            train += ["--stages", 2, "--schedule", run.schedule]
        train += ["--tensor", run.tensor]
        ranks = run.ranks * run.tensor * (1 if run.schedule == "none" else 2)  # run.ranks: data ranks
        words = {"threads": [*train, "--ranks", ranks], "mpi": [*MPIRUN, "-n", ranks, *train]}.get(
            run.transport, [PROGRAM, "launch", "-n", ranks, "--", *train])
        environment = KEPT if run.transport == "threads" else KEPT | {"SCALETRAIN_TRANSPORT": run.transport}
        log.unlink(missing_ok=True)
        try:
            done = subprocess.run([str(word) for word in words], env=environment, capture_output=True, text=True, timeout=600, check=False)
        except subprocess.TimeoutExpired as problem:
            return str(problem)
        if done.returncode != 0:
            return f"status {done.returncode}: {done.stderr}"
        lines = log_lines(log)
        return [(line["loss"], line["grad_norm"]) for line in lines if "loss" in line], lines[-1]["state"]

    def what_must_come(self, run):
        """The result of one data rank; with reduce step, of as many threads at stage 0."""
        ranks = run.ranks if run.reduce == "step" else 1
        key = (run.precision, run.reduce, ranks, run.tensor)
        if key not in self.expected:
            self.expected[key] = self.end_of(Run("threads", ranks, 0, 25 << 20, "off", run.precision, run.reduce, tensor=run.tensor))
        return self.expected[key]


class Transports(unittest.TestCase):
    def test_of_all_kinds_leave_one_state(self):
        with tempfile.TemporaryDirectory() as folder:
            training = Training(folder)
            runs = list(covering(SELECTED))
            for run in {run.transport: run for run in runs}.values() if FEW else runs:
                with self.subTest(run=run):
                    if why := why_not(run.transport):
                        self.skipTest(why)
                    losses, state = training.what_must_come(run)
                    self.assertEqual(len(losses), 2)
                    self.assertEqual(training.end_of(run), (losses, state))


def product(values):
    """Prints every run with another result than expected, and the states. Returns whether there was none."""
    begun, runs, wrong = time.monotonic(), collections.Counter(), 0
    with tempfile.TemporaryDirectory() as folder:
        training = Training(folder)
        for run in map(Run._make, itertools.product(*values)):
            expected, end = training.what_must_come(run), training.end_of(run)
            runs[run.precision, run.reduce, run.ranks, run.tensor, expected[1]] += 1
            if runs.total() % 48 == 0:
                print(f"{runs.total()} runs, the last one {run}", file=sys.stderr)
            if end != expected:
                wrong += 1
                print(f"{run}\n  {end}, not\n  {expected}", flush=True)
    for key, count in sorted(runs.items()):
        print("{} {} on {} data ranks, tensor {}: {},".format(*key), count, "runs")
    print(f"{runs.total()} runs over {', '.join(values.transport)}, zero {values.zero}, schedules {values.schedule}, tensor {values.tensor}, "
          f"in {time.monotonic() - begun:.0f} s: {wrong} wrong")
    return wrong == 0


if __name__ == "__main__":
    if "--product" in sys.argv:
        options = argparse.ArgumentParser()
        options.add_argument("--product", action="store_true")
        for name in ("transport", "ranks", "zero"):
            values = getattr(EVERYTHING, name)
            options.add_argument(f"--{name}", nargs="+", default=values, choices=values, type=type(values[0]))
        options.add_argument("--schedule", nargs="+", default=EVERYTHING.schedule)
        options.add_argument("--tensor", nargs="+", type=int, default=EVERYTHING.tensor)
        given = options.parse_args()
        sys.exit(not product(EVERYTHING._replace(transport=tuple(given.transport), ranks=tuple(given.ranks), zero=tuple(given.zero),
                                                 schedule=tuple(given.schedule), tensor=tuple(given.tensor))))
    unittest.main()
