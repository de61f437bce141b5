"""Ranks of a cluster as processes: the same sums over every transport, and a killed one is named.

Usage: cluster_test.py CLUSTER_RANK PLUGIN_FOLDER
"""

import os
import shutil
import socket
import subprocess
import sys
import unittest

RANK, PLUGINS = sys.argv.pop(1), sys.argv.pop(1)
KEPT = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMIX_", "SLURM_"))}


def why_not(transport):
    if not os.path.exists(f"{PLUGINS}/libscaletrain_{transport}.so"):
        return f"no {transport}: libscaletrain_{transport}.so was not built"
    if transport == "mpi" and shutil.which("mpirun") is None:
        return "no mpirun"
    return None


def processes(transport, size, *arguments):
    """Starts ranks as torchrun would, and waits for them: (exit status, what it said) of each."""
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        number = port.getsockname()[1]
    ranks = []
    for rank in range(size):
        environment = KEPT | {
            "RANK": str(rank),
            "WORLD_SIZE": str(size),
            "LOCAL_RANK": str(rank),
            "LOCAL_WORLD_SIZE": str(size),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(number),
            "SCALETRAIN_TRANSPORT": transport,
            "SCALETRAIN_PLUGINS": PLUGINS,
        }
        ranks.append(subprocess.Popen([RANK, *arguments], env=environment, stdout=subprocess.PIPE, text=True))
    said = []
    for rank, process in sorted(enumerate(ranks), key=lambda numbered: arguments[1:] == (str(numbered[0]),)):
        if arguments[0] == "stops" and rank == int(arguments[1]):
            process.kill()  # the others are done
        said.append((rank, process.communicate(timeout=60)[0]))
    said = [text for _, text in sorted(said)]
    return [(process.returncode, text) for process, text in zip(ranks, said)]


class Cluster(unittest.TestCase):
    def sums_of_shared_memory(self, size):
        ended = processes("local", size, "sums")
        self.assertEqual([status for status, _ in ended], [0] * size)
        self.assertEqual(len({said for _, said in ended}), 1)
        return ended[0][1]

    def test_gloo_has_the_bits_of_shared_memory(self):
        if why := why_not("gloo"):
            self.skipTest(why)
        self.assertEqual(processes("gloo", 3, "sums"), [(0, self.sums_of_shared_memory(3))] * 3)

    def test_gloo_names_a_killed_rank_and_the_others_live(self):
        if why := why_not("gloo"):
            self.skipTest(why)
        ended = processes("gloo", 3, "dies", "1")
        self.assertEqual(ended[1], (-9, ""))
        for rank in (0, 2):
            self.assertEqual(ended[rank], (0, "status 11 rank 1 in time 1\n"))

    def test_gloo_names_a_stopped_rank_at_the_deadline(self):
        if why := why_not("gloo"):
            self.skipTest(why)
        ended = processes("gloo", 3, "stops", "2")
        for rank in (0, 1):
            self.assertEqual(ended[rank], (0, "status 10 rank 2 in time 1\n"))

    def test_mpi_has_the_bits_of_shared_memory(self):
        if why := why_not("mpi"):
            self.skipTest(why)
        run = subprocess.run(
            ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3", RANK, "sums"],
            env=KEPT | {"SCALETRAIN_TRANSPORT": "mpi", "SCALETRAIN_PLUGINS": PLUGINS},
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(sorted(run.stdout.splitlines()), sorted(self.sums_of_shared_memory(3).splitlines() * 3))


if __name__ == "__main__":
    unittest.main()
