"""Ranks of a cluster as processes: equal sums over every transport, on one host and on two, and a lost rank is named.

Usage: cluster_test.py CLUSTER_RANK HOST_MPI PLUGIN_FOLDER
"""

import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

RANK, HOST_MPI = sys.argv.pop(1), sys.argv.pop(1)
HERE = socket.gethostname()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from torchrun_environment import free_port, rank_environment  # noqa: E402
from transports import KEPT, MPIRUN, why_not  # noqa: E402
from two_hosts import NotPermitted, TwoHosts  # noqa: E402


def needs(transport):
    why = why_not(transport)
    return unittest.skipIf(why, why)


def processes(transport, size, *arguments):
    """Starts ranks as torchrun would and waits for them; returns (exit status, output) of each."""
    number = free_port()
    ranks = []
    for rank in range(size):
        environment = KEPT | rank_environment(rank, size, (rank, size), port=number) | {"SCALETRAIN_TRANSPORT": transport}
        ranks.append(subprocess.Popen([RANK, *arguments], env=environment, stdout=subprocess.PIPE, text=True))
    said = []
    for rank, process in sorted(enumerate(ranks), key=lambda numbered: arguments[1:] == (str(numbered[0]),)):
        if arguments[0] == "stops" and rank == int(arguments[1]):
            process.kill()  # the others are done
        said.append((rank, process.communicate(timeout=60)[0]))
    said = [text for _, text in sorted(said)]
    return [(process.returncode, text) for process, text in zip(ranks, said)]


def mpirun(*words, transport=None):
    more = {"SCALETRAIN_TRANSPORT": transport} if transport else {}
    return subprocess.run([*MPIRUN, *words], env=KEPT | more, capture_output=True, text=True, timeout=60)


def sums_of_shared_memory(test, size):
    ended = processes("local", size, "sums")
    test.assertEqual([status for status, _ in ended], [0] * size)
    test.assertEqual(len({said for _, said in ended}), 1)
    return ended[0][1]


def mesh_of_shared_memory(test):
    ended = processes("local", 6, "mesh")
    test.assertEqual([status for status, _ in ended], [0] * 6)
    of = {line.split(":")[0]: line.split(":")[1] for _, said in ended for line in said.splitlines()}
    for rank in range(6):  # along an axis all ranks have one sum
        test.assertEqual(of[f"{rank} tensor"], of[f"{rank // 2 * 2} tensor"])
        test.assertEqual(of[f"{rank} data"], of[f"{rank % 2} data"])
    return sorted("".join(said for _, said in ended).splitlines())


class Cluster(unittest.TestCase):
    @needs("gloo")
    def test_both_axes_of_a_mesh_at_once_have_the_bits_of_shared_memory_over_gloo(self):
        said = "".join(said for _, said in processes("gloo", 6, "mesh"))
        self.assertEqual(sorted(said.splitlines()), mesh_of_shared_memory(self))

    @needs("mpi")
    def test_both_axes_of_a_mesh_at_once_have_the_bits_of_shared_memory_over_mpi(self):
        run = mpirun("-n", "6", RANK, "mesh", transport="mpi")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(sorted(run.stdout.splitlines()), mesh_of_shared_memory(self))

    def test_a_killed_rank_of_a_mesh_is_named_on_both_axes(self):
        for transport in ("local",) if why_not("gloo") else ("local", "gloo"):
            ended = processes(transport, 6, "mesh", "4")
            for rank in (0, 1, 2, 3, 5):
                self.assertEqual(ended[rank], (0, "rank 4 on one axis, 4 on the other\n"), transport)

    @needs("gloo")
    def test_gloo_has_the_bits_of_shared_memory(self):
        self.assertEqual(processes("gloo", 3, "sums"), [(0, sums_of_shared_memory(self, 3))] * 3)

    @needs("gloo")
    def test_gloo_names_a_killed_rank_and_the_others_live(self):
        ended = processes("gloo", 3, "dies", "1")
        self.assertEqual(ended[1], (-9, ""))
        for rank in (0, 2):
            self.assertEqual(ended[rank], (0, f"all_reduce of host {HERE}: status 11 rank 1 in time 1\n"))

    @needs("gloo")
    def test_gloo_names_a_stopped_rank_at_the_deadline(self):
        ended = processes("gloo", 3, "stops", "2")
        for rank in (0, 1):
            self.assertEqual(ended[rank], (0, f"all_reduce of host {HERE}: status 10 rank 2 in time 1\n"))

    @needs("mpi")
    def test_mpi_has_the_bits_of_shared_memory(self):
        run = mpirun("-n", "3", RANK, "sums", transport="mpi")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(sorted(run.stdout.splitlines()), sorted(sums_of_shared_memory(self, 3).splitlines() * 3))

    # There is no test of a killed rank: mpirun notices it and ends all ranks.
    @needs("mpi")
    def test_mpi_names_a_stopped_rank_at_the_deadline(self):
        words, environment = [*MPIRUN, "-n", "3", RANK, "stops", "2"], KEPT | {"SCALETRAIN_TRANSPORT": "mpi"}
        with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as run:
            end = threading.Timer(30, run.terminate)  # with all ranks
            end.start()
            said = [run.stdout.readline() for _ in range(2)]
            end.cancel()
            run.terminate()
            try:
                run.wait(timeout=20)
            except subprocess.TimeoutExpired:
                run.kill()  # Open MPI 4's mpirun may wait for a thread of its own for good when it has ended all ranks
        self.assertEqual(said, [f"all_reduce of host {HERE}: status 10 rank 2 in time 1\n"] * 2)


@unittest.skipUnless(os.path.exists(HOST_MPI), "no MPI for C, so there is no host that has it")
@needs("mpi")
class HostWithMpi(unittest.TestCase):
    """Communicators of the host (st_communicator_host)."""

    def runs(self, size, what):
        run = mpirun("-n", str(size), HOST_MPI, what)
        self.assertEqual((run.returncode, run.stdout), (0, "fine\n" * size), run.stderr)

    def test_gives_parts_of_its_world_and_ends_mpi_itself(self):
        self.runs(4, "groups")

    def test_with_one_thread_only_is_refused_with_both_levels(self):
        self.runs(2, "funneled")

    def test_without_mpi_is_refused_and_gets_none(self):
        self.runs(2, "uninitialised")

    def test_that_has_ended_mpi_is_refused(self):
        self.runs(2, "gone")


class TwoHostsTest(unittest.TestCase):
    """Ranks 0 and 1 on the near host, 2 on the far one."""

    @classmethod
    def setUpClass(cls):
        if why := why_not("gloo"):
            raise unittest.SkipTest(why)

    def setUp(self):
        try:
            self.hosts = TwoHosts()  # new for each test, which may cut the cable
        except NotPermitted as problem:
            self.skipTest(f"no two hosts here: {problem}")
        self.addCleanup(self.hosts.end)

    def start(self, *arguments, address="10.77.0.1", names=None):
        """names: the content of /etc/hosts for each rank."""
        ranks = []
        for rank, (host, local) in enumerate((("near", (0, 2)), ("near", (1, 2)), ("far", (0, 1)))):
            environment = KEPT | rank_environment(rank, 3, local, host=address, port=29511)
            environment.pop("SCALETRAIN_TRANSPORT", None)  # gloo, since they are on two hosts
            words = [*self.hosts.inside(host), *(self.with_names(names[rank]) if names else ()), RANK, *arguments]
            process = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)
            self.addCleanup(lambda ended=process: (ended.kill(), ended.communicate()))
            ranks.append(process)
        return ranks

    def with_names(self, lines):
        """The words that make a command see these lines as /etc/hosts."""
        hosts = tempfile.NamedTemporaryFile("w", encoding="ascii")
        self.addCleanup(hosts.close)
        hosts.write(lines)
        hosts.flush()
        return ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', hosts.name]

    def ends(self, ranks):
        said = [process.communicate(timeout=60)[0] for process in ranks]
        return [(process.returncode, text) for process, text in zip(ranks, said)]

    def test_have_the_bits_of_shared_memory_over_ipv4_and_ipv6(self):
        wanted = [(0, sums_of_shared_memory(self, 3))] * 3
        self.assertEqual(self.ends(self.start("sums")), wanted)
        if os.path.exists("/proc/net/if_inet6"):
            self.assertEqual(self.ends(self.start("sums", address="fd77::1")), wanted)

    def test_meet_where_the_name_of_rank_0_is_a_loopback_address_or_a_strange_one_on_its_own_host(self):
        wanted = [(0, sums_of_shared_memory(self, 3))] * 3
        loopback, strange, seen = "127.0.1.1", "10.77.0.99", "10.77.0.1"  # Debian's loopback entry; a translated address
        for addresses in ((loopback, loopback, seen), (strange, seen, seen)):
            with self.subTest(addresses=addresses):
                names = [f"{address} chief\n" for address in addresses]
                self.assertEqual(self.ends(self.start("sums", address="chief", names=names)), wanted)

    @unittest.skipUnless(os.path.exists("/proc/net/if_inet6"), "no IPv6 here")
    def test_meet_where_the_others_know_rank_0_by_another_family_of_addresses(self):
        wanted = [(0, sums_of_shared_memory(self, 3))] * 3
        for addresses in (("10.77.0.1", "fd77::1", "fd77::1"), ("10.77.0.1", "127.0.0.1", "fd77::1")):
            with self.subTest(addresses=addresses):
                names = [f"{address} chief\n" for address in addresses]
                self.assertEqual(self.ends(self.start("sums", address="chief", names=names)), wanted)

    def test_meet_where_the_port_of_rank_0_is_one_that_the_system_gives_to_connections(self):
        # Until rank 0 listens, a socket of its own host that connects there may get that port itself, and is connected with itself.
        inside = self.hosts.inside("near")
        subprocess.run([*inside, "sh", "-c", "echo 29512 29527 >/proc/sys/net/ipv4/ip_local_port_range"], check=True)
        ranks = []
        for rank in (1, 0):
            environment = KEPT | rank_environment(rank, 2, (rank, 2), host="127.0.0.1", port=29512) | {"SCALETRAIN_TRANSPORT": "gloo"}
            ranks.append(subprocess.Popen([*inside, RANK, "sums"], env=environment, stdout=subprocess.PIPE, text=True))
            self.addCleanup(lambda ended=ranks[-1]: (ended.kill(), ended.communicate()))
            time.sleep(0.5 if rank == 1 else 0)  # some 20 attempts to reach rank 0, which is not there
        self.assertEqual(self.ends(ranks), [(0, sums_of_shared_memory(self, 2))] * 2)

    def test_name_a_killed_rank_of_the_other_host(self):
        near, other, killed = self.ends(self.start("dies", "2"))
        self.assertEqual(killed, (-9, ""))
        for ended in (near, other):
            self.assertEqual(ended, (0, "all_reduce of host far: status 11 rank 2 in time 1\n"))

    def test_name_whom_a_lost_link_parts_them_from_at_the_deadline(self):
        ranks = self.start("parts")
        for rank in ranks:
            self.assertEqual(rank.stdout.readline(), "going\n")
        self.hosts.cut()
        near, other, far = self.ends(ranks)
        for ended in (near, other):
            self.assertEqual(ended, (0, "all_reduce of host far: status 10 rank 2 in time 1\n"))
        self.assertIn(far, [(0, f"all_reduce of host near: status 10 rank {rank} in time 1\n") for rank in (0, 1)])

    @needs("mpi")
    def test_have_the_bits_of_shared_memory_over_mpi(self):
        with tempfile.TemporaryDirectory() as folder:
            agent = pathlib.Path(folder, "agent")  # in place of ssh
            agent.write_text(f'#!/bin/sh\nshift\nexec {" ".join(self.hosts.inside("far", is_outside=False))} sh -c "$*"\n', encoding="ascii")
            agent.chmod(0o700)
            network = [word for layer in ("btl_tcp", "oob_tcp") for word in ("--mca", f"{layer}_if_include", "10.77.0.0/24")]
            run = subprocess.run(
                [*self.hosts.inside("near"), *MPIRUN, "-H", "10.77.0.1:2,10.77.0.2:1", "--mca", "plm_rsh_agent", agent, *network, "-n", "3",
                 "-x", "SCALETRAIN_TRANSPORT", "-x", "SCALETRAIN_PLUGINS", RANK, "sums"],
                env=KEPT | {"SCALETRAIN_TRANSPORT": "mpi"}, capture_output=True, text=True, timeout=60)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(sorted(run.stdout.splitlines()), sorted(sums_of_shared_memory(self, 3).splitlines() * 3))


if __name__ == "__main__":
    unittest.main()
