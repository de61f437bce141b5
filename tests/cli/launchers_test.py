"""Runs each file of samples/cluster to its end, as its launcher would, with two ranks on this machine; the state equals that of threads."""

import os
import re
import shlex
import shutil
import subprocess
import unittest
from pathlib import Path

from command_line import PROGRAM, ROOT, TINY, CommandLineTest, log_lines, run, step_lines

CLUSTER = ROOT / "samples" / "cluster"
LAUNCHERS = re.compile("RANK|WORLD_SIZE|LOCAL_|MASTER_|OMPI_|PMI|SLURM_|TORCHELASTIC_|SCALETRAIN_(?!ISA$|THREADS$)")

# Starts two tasks and exits with the sum of their statuses.
TWO_TASKS = """
import os, subprocess, sys
tasks = [subprocess.Popen(program, env={**os.environ, **variables(rank)}) for rank in range(2)]
sys.exit(sum(task.wait() for task in tasks))
"""

# The variables that srun gives to a task of a one-node job.
SRUN = """#!/usr/bin/python3
import os, sys
assert sys.argv[1] == "--kill-on-bad-exit=1" and os.environ["SRUN_CPUS_PER_TASK"] == os.environ["SLURM_CPUS_PER_TASK"], sys.argv
program = sys.argv[2:]
def variables(rank):
    return {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank), "SLURM_NODEID": "0", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2",
            "SLURM_STEP_TASKS_PER_NODE": "2", "SLURM_STEP_NODELIST": os.environ["SLURM_JOB_NODELIST"], "SLURMD_NODENAME": "node007"}
""" + TWO_TASKS

TORCHRUN = """#!/usr/bin/python3
import os, sys
options = sys.argv[1 : sys.argv.index("scaletrain")]
assert options == ["--standalone", "--nnodes=1", "--nproc-per-node=2", "--max-restarts=3", "--no-python"], options
program = sys.argv[len(options) + 1 :]
def variables(rank):
    return {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "0", "MASTER_ADDR": "localhost",
            "MASTER_PORT": str(20000 + os.getpid() % 10000), "TORCHELASTIC_RUN_ID": "job-%d" % os.getpid(), "TORCHELASTIC_RESTART_COUNT": "0"}
""" + TWO_TASKS


def directives(script):
    """The options that sbatch reads: --name=value in its lines before the first command."""
    found = {}
    for line in script.read_text().splitlines():
        if line.startswith("#SBATCH "):
            name, _, value = line.removeprefix("#SBATCH ").partition("=")
            found[name] = value
        elif line and not line.startswith("#"):
            break
    return found


class Cluster(CommandLineTest):
    def setUp(self):
        super().setUp()
        self.log = self.folder / "run.jsonl"
        self.tiny = [*TINY, "--steps", "3", "--data", str(self.text)]
        # The program is found by name, as when it is installed, and a launcher's stand-in is found before the launcher.
        self.file("scaletrain", f'#!/bin/sh\nexec {shlex.quote(os.path.abspath(PROGRAM))} "$@"\n').chmod(0o755)

    def stand_in(self, name, script):
        self.file(name, script).chmod(0o755)

    def state_of(self, command, **variables):
        """The state of a run by that command; its log must have one line per step."""
        clean = {name: value for name, value in os.environ.items() if not LAUNCHERS.match(name)}
        environment = {**clean, "PATH": f"{self.folder}:{os.environ['PATH']}", "TMPDIR": str(self.folder), **variables}
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, env=environment, timeout=300, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        lines = step_lines(self.log)
        self.assertEqual([line.get("step") for line in lines], [1, 2, 3, None])
        return lines[-1]["state"]

    def expect_state_of_threads(self, state):
        log = self.folder / "threads.jsonl"
        self.assertEqual(run("train", *self.tiny, "--ranks", 2, "--log", log).returncode, 0)
        self.assertEqual(state, log_lines(log)[-1]["state"])

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun")
    def test_mpirun(self):
        # As root, and if the machine counts as one slot.
        allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
        self.expect_state_of_threads(self.state_of([CLUSTER / "train_mpirun.sh", 2, *self.tiny, "--log", self.log], **allowed))

    def test_slurm(self):
        self.stand_in("srun", SRUN)
        asked = directives(CLUSTER / "train.slurm")
        self.assertEqual((asked["--nodes"], asked["--ntasks"]), ("1", "2"))
        job = {
            "SLURM_JOB_ID": str(os.getpid()),
            "SLURM_NTASKS": asked["--ntasks"],
            "SLURM_NPROCS": asked["--ntasks"],
            "SLURM_NNODES": asked["--nodes"],
            "SLURM_CPUS_PER_TASK": asked["--cpus-per-task"],
            "SLURM_JOB_NODELIST": "node007",
            "SLURM_TASKS_PER_NODE": "2",
        }
        self.expect_state_of_threads(self.state_of(["bash", CLUSTER / "train.slurm", *self.tiny, "--log", self.log], **job))

    def test_torchrun(self):
        self.stand_in("torchrun", TORCHRUN)
        self.expect_state_of_threads(self.state_of([CLUSTER / "train_torchrun.sh", 2, *self.tiny, "--log", self.log]))

    def test_kubernetes(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("no PyYAML")
        claim, job = yaml.safe_load_all((CLUSTER / "train_kubernetes.yaml").read_text())
        pod = job["spec"]["template"]["spec"]
        container = pod["containers"][0]
        self.assertEqual((claim["kind"], job["kind"], pod["restartPolicy"]), ("PersistentVolumeClaim", "Job", "OnFailure"))
        # The claim's mount folder is replaced by this test's, the model by a small one.
        mount = container["volumeMounts"][0]
        volume = next(volume for volume in pod["volumes"] if volume["name"] == mount["name"])
        self.assertEqual(volume["persistentVolumeClaim"]["claimName"], claim["metadata"]["name"])
        words = [word.replace(mount["mountPath"], str(self.folder)) for word in container["command"] + container["args"]]
        self.assertEqual(Path(words[words.index("--log") + 1]), self.log)
        self.expect_state_of_threads(self.state_of([*words, *self.tiny]))
        self.assertTrue(any((self.folder / "run").iterdir()), "no checkpoint")


if __name__ == "__main__":
    unittest.main()
