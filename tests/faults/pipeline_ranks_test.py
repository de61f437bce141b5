"""Stages of a host's own pipeline as processes: gradients have the bits of one stage over every transport; all name a lost stage.

    pipeline_ranks_test.py SCALETRAIN STAGE_RANK PLUGIN_FOLDER
"""

import itertools
import pathlib
import random
import signal
import subprocess
import sys
import time
import unittest

SCALETRAIN, RANK = sys.argv.pop(1), sys.argv.pop(1)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from torchrun_environment import free_port, rank_environment  # noqa: E402
from transports import KEPT, MPIRUN, why_not  # noqa: E402

TRANSPORTS = [transport for transport in ("local", "gloo", "mpi") if not why_not(transport)]
STAGES = (3, "1f1b", 1), (2, "interleaved", 2), (3, "zb-v", 2)  # ranks, schedule, chunks
EACH = list(itertools.product([transport for transport in TRANSPORTS if transport != "mpi"], STAGES))  # mpirun ends all where one is lost
SLOW = EACH[::5]  # each transport once
TIMEOUT, RANK_FAILED, CALLBACK = 10, 11, 16
DEADLINE, SOON = 1, 0.5  # seconds


def launched(transport, size, *words):
    """All output of ranks under a launcher."""
    start = [*MPIRUN, "-n", size] if transport == "mpi" else [SCALETRAIN, "launch", "-n", size, "--"]
    done = subprocess.run([str(word) for word in (*start, RANK, *words)], env=KEPT | {"SCALETRAIN_TRANSPORT": transport}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    return done.returncode, done.stdout


class Stages(unittest.TestCase):
    def ends(self, transport, what, size, schedule, chunks):
        """Runs ranks without a launcher. Returns the victim, the outcome of each rank, and seconds from the victim's end to that of all."""
        victim, port, ranks = random.randrange(size), free_port(), []
        for rank in range(size):
            environment = KEPT | rank_environment(rank, size, (rank, size), port=port) | {"SCALETRAIN_TRANSPORT": transport}
            ranks.append(subprocess.Popen([RANK, what, str(victim), schedule, str(chunks)], env=environment, text=True,
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE))
            self.addCleanup(lambda ended=ranks[-1]: (ended.kill(), ended.communicate()))
        said = {victim: ranks[victim].communicate(timeout=60)} if what != "stops" else self.until_stopped(ranks[victim])
        began = time.monotonic()
        said |= {rank: process.communicate(timeout=60) for rank, process in enumerate(ranks) if rank != victim}
        seconds = time.monotonic() - began
        return victim, {rank: (out or ranks[rank].returncode, err) for rank, (out, err) in said.items()}, seconds

    def until_stopped(self, process):
        while pathlib.Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").split()[2] != "T":
            self.assertIsNone(process.poll())
            time.sleep(0.002)
        return {}

    def test_have_the_gradients_of_one_stage_in_every_schedule_over_every_transport(self):
        for transport in TRANSPORTS:
            for size in (2, 3):
                with self.subTest(transport=transport, size=size):
                    status, said = launched(transport, size, "sums")
                    self.assertEqual((status, said.count("alike\n")), (0, size), said)

    def assert_ends(self, what, check, each=EACH):
        for transport, stages in each:
            victim, said, seconds = self.ends(transport, what, *stages)
            with self.subTest(transport=transport, stages=stages, victim=victim, said=said):
                check(victim, said, seconds)

    def test_a_function_that_fails_ends_all_with_its_stage_and_reason(self):
        def check(victim, said, seconds):
            self.assertEqual(said.pop(victim)[0], f"status {CALLBACK} rank -1\n")
            for out, err in said.values():
                self.assertEqual(out, f"status {RANK_FAILED} rank {victim}\n")
                self.assertRegex(err, f'stage {victim} has failed: .*"the sensor is gone"')
            self.assertLess(seconds, SOON)

        self.assert_ends("fails", check)
        if "mpi" in TRANSPORTS:
            status, said = launched("mpi", 3, "fails", 1, "1f1b", 1)
            self.assertEqual(status, 0, said)
            self.assertEqual((said.count(f"status {RANK_FAILED} rank 1\n"), said.count(f"status {CALLBACK} rank -1\n")), (2, 1), said)

    def test_a_killed_one_is_named_by_all_others(self):
        def check(victim, said, seconds):
            self.assertEqual(said.pop(victim)[0], -signal.SIGKILL)
            for out, _ in said.values():
                self.assertEqual(out, f"status {RANK_FAILED} rank {victim}\n")
            self.assertLess(seconds, 1 + SOON)

        self.assert_ends("dies", check)

    def test_a_stopped_one_is_named_by_all_others_at_the_deadline(self):
        def check(victim, said, seconds):
            for out, err in said.values():
                self.assertEqual(out, f"status {TIMEOUT} rank {victim}\n")
                self.assertIn("no sign of life", err)
            self.assertLess(seconds, DEADLINE + SOON)

        self.assert_ends("stops", check, SLOW)

    def test_one_that_computes_past_the_deadline_is_named_by_all(self):
        def check(victim, said, seconds):
            for out, err in said.values():
                self.assertEqual(out, f"status {RANK_FAILED} rank {victim}\n")
                self.assertRegex(err, f"stage {victim} has computed for longer than the deadline of 1 s: [a-z_ ]+ of part")
            self.assertLess(seconds, SOON)

        self.assert_ends("computes", check, SLOW)


if __name__ == "__main__":
    unittest.main()
