"""Ranks that train over Gloo, as in a cluster: all others name a lost rank, at whatever point of the training.

    gloo_training_test.py SCALETRAIN PLUGIN_FOLDER
"""

import pathlib
import random
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from command_line import PROGRAM, TINY, CommandLineTest, log_lines, run  # noqa: E402
from training_ranks import Ranks  # noqa: E402
from transports import KEPT, why_not  # noqa: E402

FOR_EVER = 1_000_000  # steps
DEADLINE, GLOO_CONNECTS = 2, 10  # seconds


@unittest.skipIf(why_not("gloo"), why_not("gloo"))
class GlooTraining(CommandLineTest):
    def words(self, *more):
        return [*map(str, ("--data", self.text, *TINY, "--micro-batches", 6, "--transport", "gloo", "--deadline", DEADLINE, *more))]

    def start(self, size, *more):
        return Ranks(self, size, self.words(*more), environment=KEPT)

    def assert_named(self, ranks, victim, since, within, where):
        for rank, process in enumerate(ranks.processes):
            if rank == victim:
                continue
            err = process.communicate(timeout=30)[1]
            self.assertLess(time.monotonic() - since, within, (where, rank, err))
            self.assertEqual(process.returncode, 3, (where, rank, err))
            self.assertRegex(err, f"rank {victim}|within {DEADLINE} s; missing: {victim};", where)

    def test_a_rank_that_is_killed_in_a_step_or_a_save_is_named(self):
        chance = random.Random()
        for trial, more in enumerate((("--zero", 3), ("--zero", 1, "--checkpoint", self.folder / "run", "--every", 1))):
            ranks = self.start(3, "--steps", FOR_EVER, *more)
            victim = chance.randrange(3)
            ranks.until_step(2)
            if "--checkpoint" in more:
                ranks.until_saved(self.folder / "run")
            pause = chance.uniform(0, 0.05)
            time.sleep(pause)
            ranks[victim].kill()
            self.assert_named(ranks, victim, time.monotonic(), DEADLINE + 0.5, f"trial {trial}: rank {victim} is killed {pause} s later")
        left = run("checkpoint", "verify", self.folder / "run")
        self.assertEqual(left.returncode, 0, left.stdout + left.stderr)

    def test_a_rank_that_is_killed_at_the_start_is_named(self):
        ranks = self.start(3, "--steps", FOR_EVER)
        pause = random.Random().uniform(0, 0.2)
        time.sleep(pause)
        ranks[2].kill()
        # It may not have joined at all, or be gone before Gloo has connected to it, for which Gloo waits at least this long.
        self.assert_named(ranks, 2, time.monotonic(), GLOO_CONNECTS + DEADLINE + 1, f"rank 2 is killed {pause} s after its start")

    def test_what_a_lost_rank_leaves_goes_on_over_shared_memory(self):
        undisturbed = self.train("--data", self.text, *TINY, "--micro-batches", 6, "--steps", 600)[-1]
        checkpoints, log = self.folder / "run", self.folder / "log.jsonl"
        more = ("--zero", 2, "--checkpoint", checkpoints, "--resume", "--log", log)
        ranks = self.start(3, "--steps", FOR_EVER, "--every", 2, *more)
        ranks.until_step(5)
        ranks[1].kill()
        self.assert_named(ranks, 1, time.monotonic(), DEADLINE + 0.5, "rank 1 is killed")
        words = [PROGRAM, "train", "--data", self.text, *TINY, "--micro-batches", 6, "--steps", 600, *more]
        done = run("launch", "-n", 2, "--", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("resumed", done.stdout)
        self.assertEqual(log_lines(log)[-1]["state"], undisturbed["state"])


if __name__ == "__main__":
    unittest.main()
