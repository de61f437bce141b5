"""`scaletrain bench step`, `optimizer` and `checkpoint` compare with PyTorch, `collective` with Gloo and OpenMPI; each says why a peer is
missing. `--calibrate` measures this machine for plans."""

import json
import os
import re
import subprocess
import unittest

from command_line import PROGRAM, SANITIZED, CommandLineTest


class Bench(CommandLineTest):
    """Files left by a stopped program stay in the test's own folder."""

    def command(self, name, *arguments, **variables):
        environment = {**os.environ, "SCALETRAIN_PYTHON": str(self.folder / "nowhere"), "TMPDIR": str(self.folder), **variables}
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment}
        return [PROGRAM, "bench", name, *map(str, arguments)], options

    def bench(self, name, *arguments, **variables):
        command, options = self.command(name, *arguments, **variables)
        done = subprocess.run(command, timeout=300, **options)
        self.assertEqual(list(self.folder.glob("scaletrain-bench-*")), [])
        return done

    def result(self, name, *arguments, **variables):
        done = self.bench(name, *arguments, "--json", **variables)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def refused(self, name, *options):
        for option in options:
            done = self.bench(name, *option)
            self.assertEqual(done.returncode, 2, option)
            self.assertIn(option[0].lstrip("-"), done.stderr)

    def program(self, name, script):
        path = self.file(name, "#!/bin/sh\n" + script)
        path.chmod(0o755)
        return str(path)


class BenchStep(Bench):
    def head(self, last, *arguments, **variables):
        """Its output up to the line that starts with `last`."""
        command, options = self.command("step", "--rounds", 1, *arguments, **variables)
        process = subprocess.Popen(command, **options)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith(last):
                break
        return "".join(lines)

    def test_a_peer_that_is_not_there_is_absent_for_a_reason(self):
        torchless = self.program("torchless", """read line; echo '{"error": "python has no torch"}'""")
        nowhere = self.folder / "nowhere"
        for python, reason in ((nowhere, f"no {nowhere}; name a python with torch"), (torchless, "python has no torch"),
                               (self.program("ends", "exit 1"), "the PyTorch process ended without an answer")):
            self.assertIn("pytorch is absent: " + reason, self.head("pytorch", SCALETRAIN_PYTHON=str(python)))
        self.assertIn("pytorch is absent: no ", self.head("pytorch", "--against", "pytorch"))

    def test_a_pytorch_that_cannot_make_the_model_leaves_our_speed(self):
        answers = """read line; echo '{"torch": "0.1"}'; read line; echo '{"error": "too old"}'"""
        head = self.head("gpt ", SCALETRAIN_PYTHON=self.program("python", answers))
        self.assertIn(", PyTorch 0.1\n", head)
        self.assertIn("gpt 128x4", head)

    def test_none_does_not_ask_for_it_and_a_precision_is_in_the_names(self):
        head = self.head("gpt ", "--against", "none", "--dtype", "bf16")
        self.assertNotIn("pytorch", head.lower())
        self.assertRegex(head, r"gpt 128x4 .* bf16\n")

    def test_memory_grows_no_faster_than_the_context(self):
        rows = self.result("step", "--memory", "--threads", "1")["memory"]
        self.assertEqual([row["context"] for row in rows], [512, 1024, 2048, 4096])
        for row in rows:
            # A score matrix of 4096 x 4096 per head would take eight times as much per token as one of 512 x 512.
            self.assertLess(row["bytes_per_token"], 1.05 * rows[0]["bytes_per_token"], row["name"])
            self.assertEqual(row["allocated_bytes"], row["planned_bytes"], row["name"])
            # In addition to the plan: the program, its libraries and threads; a sanitizer has its own memory.
            if not SANITIZED:
                self.assertLess(row["peak_resident_bytes"], row["planned_bytes"] + (64 << 20), row["name"])

    @unittest.skipUnless(os.environ.get("SCALETRAIN_LONG_TESTS") == "1", "half a minute; SCALETRAIN_LONG_TESTS=1 runs it")
    def test_json_lists_the_absent_peer(self):
        result = self.result("step", "--rounds", 1)
        self.assertEqual([row["peers"] for row in result["rows"]], [{}, {}, {}])
        self.assertIn("nowhere", result["absent"]["pytorch"])


class BenchOptimizer(Bench):
    OPTIONS = ("--rounds", 1, "--threads", 1)

    def test_json_has_our_speed_and_the_bytes_of_the_state(self):
        result = self.result("optimizer", *self.OPTIONS)
        self.assertEqual((result["bench"], len(result["rows"])), ("optimizer", 4))
        for row in result["rows"]:
            self.assertGreater(row["own"], 0)
            self.assertGreater(row["limit_fraction"], 0)
            bytes_of_state = float(re.search(r", (\S+) bytes of state each$", row["name"])[1])
            self.assertLessEqual(bytes_of_state, 2.1 if "8bit" in row["name"] else 8, row["name"])
        self.assertIn("nowhere", result["absent"]["pytorch"])

    def test_a_peer_that_makes_other_steps_is_no_peer(self):
        python = self.program("python", """read line; echo '{"torch": "0.1"}'
read line; echo '{"modes": ["fused"], "absent": {}}'
while read line; do echo '{"check": 41.5, "seconds": 0.001}'; done
""")
        done = self.bench("optimizer", *self.OPTIONS, SCALETRAIN_PYTHON=python)
        self.assertEqual(done.returncode, 3)
        self.assertIn("PyTorch fused to 41.5", done.stderr)
        self.assertIn("take different steps", done.stderr)

    def test_options_of_other_benchmarks_are_refused(self):
        self.refused("optimizer", ["--tiles"], ["--memory"], ["--dtype", "bf16"], ["--shape", "8x8x8"], ["--against", "mkl"], ["--tune"])


class BenchCheckpoint(Bench):
    def test_says_what_a_save_and_a_load_cost(self):
        rows = {row["name"]: row for row in self.result("checkpoint", "--rounds", 2, "--shape", 3, "--against", "none")["rows"]}
        self.assertEqual(list(rows), ["snapshot 3 MiB", "write 3 MiB", "load 3 MiB", "load, proved first, 3 MiB", "step during a flush of 3 MiB"])
        self.assertEqual({row["unit"] for row in rows.values()}, {"MB/s", "steps/s"})
        for row in rows.values():
            self.assertGreater(row["own"], 0)
            self.assertGreater(row["limit_fraction"], 0)

    def test_a_peer_that_is_not_there_is_the_reason(self):
        done = self.bench("checkpoint", "--rounds", 1, "--shape", 1)
        self.assertRegex(done.stdout, r"pytorch is absent: no \S+/nowhere; name a python with torch")
        self.assertEqual(done.returncode, 0)

    def test_a_size_that_is_none_is_refused(self):
        self.refused("checkpoint", ["--shape", "0"], ["--shape", "big"], ["--shape", "-3"])


class BenchCollective(Bench):
    def test_measures_threads_and_processes(self):
        result = self.result("collective", "--rounds", 1, "--shape", 4096, "--ranks", 3, "--against", "none")
        names = [f"{what} 4 KiB, 3 {of}" for what in ("all_reduce", "reduce_scatter", "all_gather") for of in ("threads", "processes")]
        self.assertEqual([row["name"] for row in result["rows"]], names)
        for row in result["rows"]:
            call = row["latency_us"]["own"]
            self.assertLessEqual(call["p10"], call["median"])
            self.assertLessEqual(call["median"], call["p90"])
            self.assertAlmostEqual(row["own"], 4096 / call["median"] * 1e-3, delta=1e-6 * row["own"])
            self.assertEqual((row["unit"], row["peers"]), ("GB/s", {}))
            self.assertGreater(row["limit_fraction"], 0)

    def rank_that_says(self, answer):
        """A peer's rank that gives this answer to each order."""
        return self.program("peer", f"""while read order; do echo "$3 {answer}"; done <"$1/order.$3" >"$1/answers"\n""")

    def test_a_peer_is_measured_in_the_same_rounds(self):
        peer = self.rank_that_says("times 0.002 0.001 0.003")
        for row in self.result("collective", "--rounds", 1, "--shape", 4096, "--against", "gloo", SCALETRAIN_GLOO=peer)["rows"]:
            self.assertEqual(row["latency_us"]["gloo"], {"median": 2000, "p10": 1000, "p90": 3000})
            self.assertAlmostEqual(row["ratio"]["gloo"]["median"], 2000 / row["latency_us"]["own"]["median"], delta=1e-3)

    def test_a_peer_that_is_not_there_or_fails_is_the_reason(self):
        for program, reason in (
            ("/nowhere", r"no /nowhere; build the target collective_gloo where libgloo-dev is installed, or name one in SCALETRAIN_GLOO"),
            (self.program("failing", "echo no network >&2; exit 5\n"), r"it ended with status 5 without an answer: no network"),
            (self.rank_that_says("error a wrong result"), "rank [01]: a wrong result"),
        ):
            done = self.bench("collective", "--rounds", 1, "--shape", 64, "--against", "gloo", SCALETRAIN_GLOO=program)
            self.assertRegex(done.stdout, "gloo is absent: " + reason)
            self.assertEqual(done.returncode, 0)

    def test_what_cannot_be_measured_is_refused(self):
        self.refused("collective", ["--ranks", "1"], ["--ranks", "65"], ["--shape", "2"], ["--shape", "7"], ["--against", "pytorch"], ["--tiles"])


class BenchCalibrate(Bench):
    def calibrate(self, *arguments):
        command, options = self.command("--calibrate", *arguments)
        return subprocess.run(command, timeout=300, **options)

    def test_it_writes_the_rates_of_this_machine(self):
        path = self.folder / "machine.json"
        done = self.calibrate(path, "--quick", "--seconds", 0)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        plan = subprocess.run([PROGRAM, "plan", "--layers", "2", "--machine", path, "--json"], capture_output=True, text=True)
        self.assertEqual((plan.returncode, plan.stderr), (0, ""))
        planned = json.loads(plan.stdout)
        self.assertEqual((planned["machine"], planned["measured"]), ("this machine", True))
        self.assertGreater(planned["step_seconds"], 0)
        machine = json.loads(path.read_text())
        version = json.loads(subprocess.run([PROGRAM, "info", "--json"], capture_output=True, check=True).stdout)["version"]
        self.assertEqual((machine["measured"], machine["library"]), (True, version))
        names = [op["name"] for op in machine["rates"][0]["ops"]]
        self.assertEqual(names, sorted(names))
        for name in ("products.f32", "products.bf16", "memory", "adamw.f32"):
            self.assertIn(name, names)
        self.assertIn(f"written to {path}", done.stdout)
        self.assertRegex(done.stdout, r"ranks +threads +plans, MiB +fp32 GFLOP/s bf16 GFLOP/s +memory GB/s")

    def test_the_quick_one_is_documented_as_shorter(self):
        self.assertRegex(self.bench("--help").stdout, r"time to measure,\s+0 to 600\s+\[40;\s+with\s+--quick\s+5\]")

    def test_a_file_that_cannot_be_written_is_refused_first(self):
        path = self.folder / "nowhere" / "machine.json"
        done = self.calibrate(path)  # would take a minute
        self.assertEqual(done.returncode, 2)
        self.assertIn(str(path), done.stderr)

    def test_options_that_do_not_fit_are_refused(self):
        path = self.folder / "machine.json"
        for arguments, reason in ((("gemm",), "leave out gemm"), (("--seconds", "-1"), "--seconds is -1; give 0 to 600"),
                                  (("--device", "cuda"), "--device is cuda, but --calibrate measures the cpu alone: no GPU has been measured yet")):
            done = self.calibrate(path, *arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn(reason, done.stderr)
        for option in (("--quick",), ("--seconds", 1)):
            done = self.bench("gemm", *option)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"{option[0]} is an option of bench --calibrate FILE", done.stderr)
        self.assertFalse(path.exists())


if __name__ == "__main__":
    unittest.main()
