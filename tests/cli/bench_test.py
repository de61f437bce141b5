"""`scaletrain bench step`, `optimizer` and `checkpoint` measure PyTorch beside us where it is installed, `collective` Gloo and OpenMPI, and all
say why not where they are not."""

import json
import os
import pathlib
import re
import subprocess
import unittest

from command_line import PROGRAM, CommandLineTest


class BenchStep(CommandLineTest):
    def start(self, python, *arguments):
        # It is stopped before its end: what it leaves lies in the test's own folder.
        environment = {**os.environ, "SCALETRAIN_PYTHON": str(python), "TMPDIR": str(self.folder)}
        command = [PROGRAM, "bench", "step", "--rounds", "1", *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def head(self, python, *arguments):
        """What it prints before and with the first shape."""
        process = self.start(python, *arguments)
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("gpt "):
                break
        return "".join(lines)

    def interpreter(self, script):
        path = self.file("python", "#!/bin/sh\n" + script)
        path.chmod(0o755)
        return path

    def test_an_interpreter_that_is_not_there_is_the_reason(self):
        for asked in ([], ["--against", "pytorch"]):
            self.assertRegex(self.head(self.folder / "nowhere", *asked), r"pytorch is absent: no \S+/nowhere; name a python with torch")

    def test_an_interpreter_without_torch_is_the_reason(self):
        python = self.interpreter("""read line; echo '{"error": "python has no torch"}'""")
        self.assertIn("pytorch is absent: python has no torch\n", self.head(python))

    def test_an_interpreter_that_ends_is_the_reason(self):
        self.assertIn("pytorch is absent: the PyTorch process ended without an answer\n", self.head(self.interpreter("exit 1")))

    def test_a_pytorch_that_cannot_make_the_model_leaves_our_speed(self):
        answers = """read line; echo '{"torch": "0.1"}'; read line; echo '{"error": "too old"}'"""
        head = self.head(self.interpreter(answers))
        self.assertIn(", PyTorch 0.1\n", head)
        self.assertIn("gpt 128x4", head)

    def test_none_does_not_ask_for_it(self):
        self.assertNotIn("pytorch", self.head(self.folder / "nowhere", "--against", "none").lower())

    def test_a_precision_is_in_the_names(self):
        self.assertRegex(self.head(self.folder / "nowhere", "--against", "none", "--dtype", "bf16"), r"gpt 128x4 .* bf16\n")

    def test_memory_grows_no_faster_than_the_context(self):
        process = self.start(self.folder / "nowhere", "--memory", "--json", "--threads", "1")
        output, error = process.communicate()
        self.assertEqual((process.returncode, error), (0, ""))
        rows = json.loads(output)["memory"]
        self.assertEqual([row["context"] for row in rows], [512, 1024, 2048, 4096])
        for row in rows:
            # A score matrix of 4096 x 4096 a head would be eight times as much a token as one of 512 x 512.
            self.assertLess(row["bytes_per_token"], 1.05 * rows[0]["bytes_per_token"], row["name"])
            self.assertEqual(row["allocated_bytes"], row["planned_bytes"], row["name"])
            # Beside the plan: the program, its libraries and threads; a sanitizer keeps books of its own.
            if b"__asan_" not in pathlib.Path(PROGRAM).read_bytes():
                self.assertLess(row["peak_resident_bytes"], row["planned_bytes"] + (64 << 20), row["name"])

    @unittest.skipUnless(os.environ.get("SCALETRAIN_LONG_TESTS") == "1", "half a minute; SCALETRAIN_LONG_TESTS=1 runs it")
    def test_json_lists_the_absent_peer(self):
        process = self.start(self.folder / "nowhere", "--json")
        output, error = process.communicate()
        self.assertEqual((process.returncode, error), (0, ""))
        result = json.loads(output)
        self.assertEqual([row["peers"] for row in result["rows"]], [{}, {}, {}])
        self.assertIn("nowhere", result["absent"]["pytorch"])


class BenchOptimizer(CommandLineTest):
    def bench(self, python, *arguments):
        environment = {**os.environ, "SCALETRAIN_PYTHON": str(python), "TMPDIR": str(self.folder)}
        command = [PROGRAM, "bench", "optimizer", "--rounds", "1", "--threads", "1", *arguments]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, check=False)

    def test_json_has_our_speed_and_the_bytes_of_the_state(self):
        done = self.bench(self.folder / "nowhere", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        result = json.loads(done.stdout)
        self.assertEqual((result["bench"], len(result["rows"])), ("optimizer", 4))
        for row in result["rows"]:
            self.assertGreater(row["own"], 0)
            self.assertGreater(row["limit_fraction"], 0)
            bytes_of_state = float(re.search(r", (\S+) bytes of state each$", row["name"])[1])
            self.assertLessEqual(bytes_of_state, 2.1 if "8bit" in row["name"] else 8, row["name"])
        self.assertIn("nowhere", result["absent"]["pytorch"])

    def test_a_peer_that_makes_other_steps_is_no_peer(self):
        path = self.file("python", """#!/bin/sh
read line; echo '{"torch": "0.1"}'
read line; echo '{"modes": ["fused"], "absent": {}}'
while read line; do echo '{"check": 41.5, "seconds": 0.001}'; done
""")
        path.chmod(0o755)
        done = self.bench(path)
        self.assertEqual(done.returncode, 3)
        self.assertIn("PyTorch fused to 41.5", done.stderr)
        self.assertIn("do not make the same steps", done.stderr)

    def test_options_of_other_benchmarks_are_refused(self):
        for option in (("--tiles",), ("--memory",), ("--dtype", "bf16"), ("--shape", "8x8x8"), ("--against", "mkl"), ("--tune",)):
            done = self.bench(self.folder / "nowhere", *option)
            self.assertEqual(done.returncode, 2, option)
            self.assertIn(option[0].lstrip("-"), done.stderr)


class BenchCheckpoint(CommandLineTest):
    def test_says_what_a_save_and_a_load_cost(self):
        command = [PROGRAM, "bench", "checkpoint", "--rounds", "2", "--shape", "3", "--against", "none", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TMPDIR": str(self.folder)}, timeout=300)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        result = json.loads(done.stdout)
        rows = {row["name"]: row for row in result["rows"]}
        self.assertEqual(list(rows), ["snapshot 3 MiB", "write 3 MiB", "load 3 MiB", "load, proved first, 3 MiB", "step during a flush of 3 MiB"])
        self.assertEqual({row["unit"] for row in rows.values()}, {"MB/s", "steps/s"})
        for row in rows.values():
            self.assertGreater(row["own"], 0)
            self.assertGreater(row["limit_fraction"], 0)
        self.assertEqual(list(self.folder.glob("scaletrain-bench-*")), [])

    def test_a_peer_that_is_not_there_is_the_reason(self):
        environment = {**os.environ, "SCALETRAIN_PYTHON": "/nowhere", "TMPDIR": str(self.folder)}
        command = [PROGRAM, "bench", "checkpoint", "--rounds", "1", "--shape", "1"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
        self.assertRegex(done.stdout, r"pytorch is absent: no /nowhere; name a python with torch")
        self.assertEqual(done.returncode, 0)

    def test_a_size_that_is_none_is_refused(self):
        for size in ("0", "big", "-3"):
            done = subprocess.run([PROGRAM, "bench", "checkpoint", "--shape", size], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn("--shape", done.stderr)


class BenchCollective(CommandLineTest):
    def bench(self, *arguments, **variables):
        environment = {**os.environ, "TMPDIR": str(self.folder), **variables}
        command = [PROGRAM, "bench", "collective", "--rounds", "1", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
        self.assertEqual(list(self.folder.glob("scaletrain-bench-*")), [])
        return done

    def test_measures_threads_and_processes(self):
        done = self.bench("--shape", "4096", "--ranks", "3", "--against", "none", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        result = json.loads(done.stdout)
        names = [f"{what} 4 KiB, 3 {of}" for what in ("all_reduce", "reduce_scatter", "all_gather") for of in ("threads", "processes")]
        self.assertEqual([row["name"] for row in result["rows"]], names)
        for row in result["rows"]:
            call = row["latency_us"]["own"]
            self.assertLessEqual(call["p10"], call["median"])
            self.assertLessEqual(call["median"], call["p90"])
            self.assertAlmostEqual(row["own"], 4096 / call["median"] * 1e-3, delta=1e-6 * row["own"])
            self.assertEqual((row["unit"], row["peers"]), ("GB/s", {}))
            self.assertGreater(row["limit_fraction"], 0)

    def peer(self, script):
        path = self.file("peer", "#!/bin/sh\n" + script)
        path.chmod(0o755)
        return str(path)

    def test_a_peer_is_measured_in_the_same_rounds(self):
        # A rank that answers each order with 2 ms.
        peer = self.peer("""while read order; do echo "$3 times 0.002 0.001 0.003"; done <"$1/order.$3" >"$1/answers"\n""")
        done = self.bench("--shape", "4096", "--against", "gloo", "--json", SCALETRAIN_GLOO=peer)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for row in json.loads(done.stdout)["rows"]:
            self.assertEqual(row["latency_us"]["gloo"], {"median": 2000, "p10": 1000, "p90": 3000})
            self.assertAlmostEqual(row["ratio"]["gloo"]["median"], 2000 / row["latency_us"]["own"]["median"], delta=1e-3)

    def test_a_peer_that_is_not_there_or_fails_is_the_reason(self):
        for program, reason in (
            ("/nowhere", r"no /nowhere; build the target collective_gloo where libgloo-dev is installed, or name one in SCALETRAIN_GLOO"),
            (self.peer("echo no network >&2; exit 5\n"), r"it ended with status 5 without an answer: no network"),
        ):
            done = self.bench("--shape", "64", "--against", "gloo", SCALETRAIN_GLOO=program)
            self.assertRegex(done.stdout, "gloo is absent: " + reason)
            self.assertEqual(done.returncode, 0)
        wrong = self.peer("""while read order; do echo "$3 error a wrong result"; done <"$1/order.$3" >"$1/answers"\n""")
        self.assertRegex(self.bench("--shape", "64", "--against", "gloo", SCALETRAIN_GLOO=wrong).stdout, "gloo is absent: rank [01]: a wrong result")

    def test_what_cannot_be_measured_is_refused(self):
        for option in (("--ranks", "1"), ("--ranks", "65"), ("--shape", "2"), ("--shape", "7"), ("--against", "pytorch"), ("--tiles",)):
            done = self.bench(*option)
            self.assertEqual(done.returncode, 2, option)
            self.assertIn(option[0].lstrip("-"), done.stderr)


if __name__ == "__main__":
    unittest.main()
