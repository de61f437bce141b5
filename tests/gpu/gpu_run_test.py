#!/usr/bin/python3
"""tests/gpu/run without a GPU: the order and the shares of its steps, one that hangs, what is carried.

usage: gpu_run_test.py RELEASE
"""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import pathlib
import sys
import tempfile
import time
import unittest
import unittest.mock

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

    def test_that_hang_leave_the_others_their_time(self):
        """The process hangs, and one that does not end with it holds its output."""
        says = [sys.executable, "-c", "print('{\"fact\": 1}')"]
        asked = [("hangs", "facts", 1, [["first", ["sh", "-c", "echo '{\"fact\": 0}'; setsid sleep 50 & sleep 50"]], ["second", says]]),
                 ("missing", "facts", 2, [["nothing", ["/nowhere/program"]]]), ("goes", "facts", 2, [["last", says]])]
        begin = time.monotonic()
        with unittest.mock.patch.object(gpu_run, "GRACE", 0.1), tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as said:
            gpu_run.measure(asked, pathlib.Path(folder), begin + 5.5)
            rows = [json.loads(row) for row in pathlib.Path(folder, "facts.jsonl").read_text().splitlines()]
        self.assertLess(time.monotonic() - begin, 40)
        self.assertRegex(said.getvalue(), r"^hangs +1 lines .* s  first: timed out; second: no time left\nmissing +skipped: its programs are not there\n"
                         r"goes +1 lines .* s  ok\n$")
        self.assertEqual([(row.get("fact"), row.get("what"), row.get("status")) for row in rows],
                         [(0, None, None), (None, "first", "timed out"), (1, None, None), (None, "last", 0)])


class Carried(unittest.TestCase):
    def test_files_are_built_and_small_enough(self):
        self.assertIsNone(gpu_run.carried(RELEASE))

    def test_a_file_that_nothing_builds_is_named(self):
        with unittest.mock.patch.object(gpu_run, "OWN", (*gpu_run.OWN, "tests/cuda/no_such_program")):
            self.assertIn("lacks no_such_program", gpu_run.carried(RELEASE))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], warnings="ignore")  # of the output that the hanging process keeps open
