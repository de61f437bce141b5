#!/usr/bin/python3
"""tests/gpu/run without a GPU: the order and the shares of its steps, one that hangs, what is carried.

usage: gpu_run_test.py RELEASE
"""
import contextlib
import gc
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import signal
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
import warnings

RELEASE = pathlib.Path(sys.argv[1])
loader = importlib.machinery.SourceFileLoader("gpu_run", str(pathlib.Path(__file__).with_name("run")))
gpu_run = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
loader.exec_module(gpu_run)


class Steps(unittest.TestCase):
    def test_come_in_the_order_of_what_is_wanted_first_and_all_have_time(self):
        steps = gpu_run.steps(pathlib.Path("products.jsonl"))
        self.assertEqual([name for name, *_ in steps],
                         ["device", "wrappers", "accepts", "conformance", "equalities", "training", "tune", "tuned", "host", "qwen", "own", "times", "products",
                          "arithmetic", "sanitizer", "ncu", "planted", "peer_adamw", "peer_layer_norm", "peer_attention", "peer_matmul", "peer_step"])
        self.assertLessEqual(sum(share for _, _, share, _ in steps), gpu_run.DEADLINE)
        self.assertLess(gpu_run.DEADLINE + 2 * gpu_run.GRACE, 9 * 60)

    def test_take_what_others_have_left_over_and_no_share_of_later_ones(self):
        later = [("b", "b", 30, []), ("c", "c", 20, [])]
        self.assertEqual(gpu_run.limit_of(10, 60, later), 10)
        self.assertEqual(gpu_run.limit_of(10, 75, later), 25)
        self.assertEqual(gpu_run.limit_of(10, 500, later), 30)
        self.assertEqual(gpu_run.limit_of(10, 40, later), 10)
        self.assertEqual(gpu_run.limit_of(10, 4, []), 4)

    def test_whose_faults_hang_come_last_and_all_have_time(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(gpu_run, "BUILD", pathlib.Path(folder)):
            program = pathlib.Path(folder, "wrapper_probes")
            program.write_text("#!/bin/sh\n[ $1 = --list ] && printf 'probe threads\nprobe tiles\nfault wrong_bytes\nfault no_fence\n'\n")
            program.chmod(0o755)
            gpu_run.probes.cache_clear()
            said = {name: (share, [what for what, _ in commands]) for name, _, share, commands in gpu_run.steps(pathlib.Path("products.jsonl"))}
        gpu_run.probes.cache_clear()
        self.assertEqual(said["wrappers"][1], ["threads", "tiles"])
        self.assertEqual(said["planted"][1], ["no_fence run", "no_fence racecheck", "wrong_bytes run", "wrong_bytes racecheck"])
        self.assertEqual([gpu_run.at_most("planted", what) for what in ("wrong_bytes run", "no_fence run")], [3, 8])
        self.assertLess(2 * gpu_run.at_most("sanitizer", "racecheck training"), said["sanitizer"][0])

    def test_that_hang_leave_the_others_their_time(self):
        """The process hangs, and one that does not end with it holds its output."""
        asked = [("hangs", "facts", 1.5, [["first", ["sh", "-c", "echo '{\"fact\": 0}'; setsid sleep 50 & echo $! >$ST_HOLDER; sleep 50"]],
                                          ["second", ["sh", "-c", "echo '{\"fact\": 1}'"]]]),
                 ("missing", "facts", 1, [["nothing", ["/nowhere/program"]]]),
                 ("goes", "facts", 20, [["last", ["sh", "-c", "echo '{\"fact\": 1}'"]]])]
        begin, threads = time.monotonic(), set(threading.enumerate())
        with contextlib.ExitStack() as held:
            folder = pathlib.Path(held.enter_context(tempfile.TemporaryDirectory()))
            held.enter_context(unittest.mock.patch.dict(os.environ, ST_HOLDER=str(folder / "holder")))
            held.enter_context(unittest.mock.patch.object(gpu_run, "GRACE", 0.1))
            said = held.enter_context(contextlib.redirect_stdout(io.StringIO()))
            left_open = held.enter_context(warnings.catch_warnings(record=True))
            warnings.simplefilter("always")
            gpu_run.measure(asked, folder, begin + 22.5)
            self.assertLess(time.monotonic() - begin, 40)
            os.kill(int((folder / "holder").read_text()), signal.SIGKILL)
            for reader in set(threading.enumerate()) - threads:
                reader.join(20)
                self.assertFalse(reader.is_alive())
            gc.collect()
            rows = gpu_run.rows_of(folder / "facts.jsonl")
        self.assertEqual([str(warning.message) for warning in left_open], [])
        self.assertRegex(said.getvalue(), r"^hangs +1 lines .* s  first: timed out; second: no time left\nmissing +skipped: its programs are not there\n"
                         r"goes +1 lines .* s  ok\n$")
        self.assertEqual([(row.get("fact"), row.get("what"), row.get("status")) for row in rows],
                         [(0, None, None), (None, "first", "timed out"), (1, None, None), (None, "last", 0)])

    def test_that_are_killed_in_a_row_leave_the_others_to_read(self):
        """The training's line is said of the rows that are whole."""
        asked = [("training", "training", 5, [["GPT-2", ["sh", "-c", "echo '{\"step\": 1}'; printf '{\"step\": 2, \"mill'; exit 1"]]])]
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as said:
            pathlib.Path(folder, "clocks.csv").touch()
            self.assertEqual(gpu_run.measure([*asked, ("fine", "training", 5, [["true", ["true"]]])], pathlib.Path(folder), time.monotonic() + 20), ["training"])
            rows = gpu_run.rows_of(pathlib.Path(folder, "training.jsonl"))
        self.assertEqual([(row.get("step"), row.get("what")) for row in rows], [(1, None), ("training", "GPT-2"), ("fine", "true")])
        self.assertIn("training: no plan, no step or no memory in use was written", said.getvalue())

    def test_ask_a_driver_that_hangs_for_seconds_alone(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(gpu_run, "ASK", 0.2), unittest.mock.patch.dict(os.environ, PATH=folder):
            self.assertIsNone(gpu_run.nvidia_smi("-L"))  # it is missing
            tool = pathlib.Path(folder, "nvidia-smi")
            tool.write_text("#!/bin/sh\nexec /bin/sleep 50\n")
            tool.chmod(0o755)
            begin = time.monotonic()
            self.assertIsNone(gpu_run.nvidia_smi("-L"))
        self.assertLess(time.monotonic() - begin, 40)


class Carried(unittest.TestCase):
    def test_files_are_built_and_small_enough(self):
        self.assertIsNone(gpu_run.carried(RELEASE))

    def test_a_file_that_nothing_builds_is_named(self):
        with unittest.mock.patch.object(gpu_run, "OWN", ("tests/cuda/no_such_program",)):
            self.assertIn("lacks no_such_program", gpu_run.carried(RELEASE))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
