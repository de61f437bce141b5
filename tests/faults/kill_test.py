"""Trap T20: a process that saves, rotates and resumes is killed at random moments: committed checkpoints survive, and nothing else is left.

    kill_test.py SAVING_PROCESS [--kills 1000] [--seed 1]
"""

import argparse
import collections
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time
import unittest

OURS = re.compile(r"latest|lock|step-\d{8}(\.\d+)?")
LEFTOVER = re.compile(r"latest\.tmp-\d+-\d+|step-\d{8}(\.\d+)?\.(part|gone)")
LONGEST = 0.12  # seconds that a process lives: enough for a start with a clean-up and a resume, and for several saves

arguments = None


def last_number(word, lines):
    return max((int(line.split()[1]) for line in lines if line.startswith(word)), default=0)


class KilledRun(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="scaletrain-kill-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name) / "run"
        self.committed = 0  # the last step that a process reported as committed
        self.seen = collections.Counter()

    def killed_after(self, seconds):
        """Returns the lines it printed until then."""
        process = subprocess.Popen([arguments.program, "save", self.folder], stdout=subprocess.PIPE, text=True)
        time.sleep(seconds)
        process.kill()
        lines = process.communicate()[0].splitlines()
        self.assertEqual(process.returncode, -9, lines)
        return lines

    def steps(self):
        """Reads and compares all checkpoints in the folder; returns their steps, newest first."""
        done = subprocess.run([arguments.program, "check", self.folder], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return [int(step) for step in done.stdout.split()[1:]]

    def look_around(self, where):
        """Expects only checkpoints and known leftovers."""
        names = [path.name for path in self.folder.iterdir()] if self.folder.exists() else []
        for name in names:
            if LEFTOVER.fullmatch(name):
                self.seen["left a " + re.sub(r"[\d-]+", "*", name)] += 1
            else:
                self.assertRegex(name, rf"^({OURS.pattern})$", where)
        if (self.folder / "latest").exists():
            latest = json.loads((self.folder / "latest").read_text())["checkpoint"]
            self.assertLessEqual(int(latest.split("-")[1]), self.newest, f"latest is moved after the commit: {where}")

    def test_the_newest_commit_survives(self):
        chance = random.Random(arguments.seed)
        steps = []
        for kill in range(arguments.kills):
            lines = self.killed_after(chance.uniform(0, LONGEST))
            where = f"kill {kill} of --seed {arguments.seed}, which had said {lines[-2:]}"
            resumed = last_number("resumed", lines)
            if resumed:
                self.assertGreaterEqual(resumed, self.committed, where)
            self.seen["killed " + ("as it saved" if resumed else "before it had resumed")] += 1
            self.committed = max(self.committed, last_number("committed", lines))
            before, steps = len(steps), self.steps()
            self.newest = steps[0] if steps else 0
            self.assertGreaterEqual(self.newest, self.committed, where)
            rotated = sum(line.startswith("committed") for line in lines) > 1
            most = 3 if rotated else max(3, before + 1)
            self.assertLessEqual(len(steps), most, f"two are kept, and one more until retention has run after a commit: {where}")
            self.assertGreaterEqual(len(steps), min(2, self.newest), f"the older one is kept: {where}")
            self.look_around(where)
        self.assertGreater(self.committed, arguments.kills // 10, "it did save")
        print(f"{arguments.kills} kills, step {self.newest}:", ", ".join(f"{n} {what}" for what, n in sorted(self.seen.items())))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    arguments = parser.parse_args()
    print(f"--kills {arguments.kills} --seed {arguments.seed}")
    unittest.main(argv=sys.argv[:1])
