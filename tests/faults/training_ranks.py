"""Ranks of `scaletrain train` that find each other by the environment, as torchrun starts them."""

import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from command_line import PROGRAM  # noqa: E402
from torchrun_environment import free_port, rank_environment  # noqa: E402


class Ranks:
    """of_rank: further arguments of a rank; set_for: further variables of a rank; last: ranks from this one on are not started."""

    def __init__(self, test, size, words, of_rank=lambda rank: (), last=None, set_for=lambda rank: {}, environment=os.environ):
        port = free_port()
        self.test, self.processes = test, []
        for rank in range(size if last is None else last):
            more = {name: str(value) for name, value in set_for(rank).items()}
            process = subprocess.Popen([PROGRAM, "train", *map(str, words), *map(str, of_rank(rank))],
                                       env={**environment, **rank_environment(rank, size, (rank, size), port=port), **more},
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.processes.append(process)
            test.addCleanup(lambda ended=process: (ended.kill(), ended.communicate()))

    def __getitem__(self, rank):
        return self.processes[rank]

    def until_step(self, step):
        while f"step {step}/" not in self[0].stdout.readline():
            self.test.assertIsNone(self[0].poll())

    def until_saved(self, checkpoints):
        while not list(checkpoints.glob("step-????????/manifest.json")):
            self.test.assertIsNone(self[0].poll())
            time.sleep(0.002)

    def ends(self, seconds=60):
        """Returns status and stderr of each rank, and the time at which all had ended."""
        outcomes = [(process.communicate(timeout=seconds)[1], process.returncode) for process in self.processes]
        return [(status, err) for err, status in outcomes], time.monotonic()
