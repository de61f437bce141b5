#!/usr/bin/python3
"""Which cuBLASLt the CUDA plug-in takes, and the line that says why products go without one.

usage: cublaslt_test.py SCALETRAIN SIMULATED_PLUGIN PROBE GOOD OTHER OLD LACKING       (the last four: folders of fakes)
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM, PLUGIN, PROBE, GOOD, OTHER, OLD, LACKING = sys.argv[1:8]
OURS = ("SCALETRAIN_CUDA_PATH", "SCALETRAIN_CUDA_PRODUCTS", "VIRTUAL_ENV", "LD_LIBRARY_PATH")
REMEDY = "install it with pip install nvidia-cublas, or the CUDA toolkit 13"


def ran(command, **settings):
    environ = {name: value for name, value in os.environ.items() if name not in OURS}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, env={**environ, **settings})
    assert done.returncode == 0 and done.stderr == "", done
    return done.stdout


def probed(**settings):
    return ran([PROBE, "cublaslt"], **settings).rstrip("\n")


def info(*arguments, **settings):
    return ran([PROGRAM, "info", *arguments], SCALETRAIN_BACKEND_PATH=PLUGIN, **settings)


class CublasLt(unittest.TestCase):
    def test_one_of_its_major_version_is_taken(self):
        self.assertEqual(probed(SCALETRAIN_CUDA_PATH=GOOD), "13.1.0")

    def test_a_missing_one_and_one_of_another_major_version_are_said_with_every_place(self):
        """The loader finds a file that is none, so that this machine's own library does not matter."""
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "libcublasLt.so.13").write_text("These are words, and more of them than an ELF header has bytes in all.\n")
            said = probed(SCALETRAIN_CUDA_PATH=OTHER, LD_LIBRARY_PATH=folder)
            self.assertTrue(said.startswith("error: cuBLASLt is missing; tried: the libraries of this process (no libcublasLt.so.13), "
                                            f"{OTHER}/libcublasLt.so.12 (another major version, 13 is needed), libcublasLt.so.13 ("), said)
            self.assertTrue(said.endswith(f"; {REMEDY}, or set SCALETRAIN_CUDA_PATH to the folder of libcublasLt.so.13"), said)

    def test_one_with_the_name_but_another_version_or_without_a_function_is_refused(self):
        self.assertEqual(probed(SCALETRAIN_CUDA_PATH=OLD), f"error: {OLD}/libcublasLt.so.13 is cuBLASLt 12.9.0, and 13 is needed; {REMEDY}")
        self.assertEqual(probed(SCALETRAIN_CUDA_PATH=LACKING), f"error: {LACKING}/libcublasLt.so.13 has no function cublasLtMatmulAlgoGetHeuristic, so it is "
                         f"no cuBLASLt that this plug-in knows; {REMEDY}")

    def test_info_says_what_products_have_and_why_they_go_without(self):
        def row(folder):
            listed = json.loads(info("--json", SCALETRAIN_SIMULATED_CUBLASLT="1", SCALETRAIN_CUDA_PATH=folder))["devices"]
            return next(device for device in listed if device["name"] == "cuda-simulated")
        there, old = row(GOOD), row(OLD)
        self.assertEqual((there["available"], there["kernels"]), (True, "simulated cublasLt=130100,1048576 table=none"))
        self.assertNotIn("without", there)
        self.assertEqual((old["available"], old["kernels"]), (True, "simulated cublasLt=none table=none"))
        self.assertEqual(old["without"], f"products have our kernels alone: {OLD}/libcublasLt.so.13 is cuBLASLt 12.9.0, and 13 is needed; {REMEDY}")
        self.assertIn(old["without"], info(SCALETRAIN_SIMULATED_CUBLASLT="1", SCALETRAIN_CUDA_PATH=OLD))


class Bench(unittest.TestCase):
    """`scaletrain bench gemm --device`, on the simulated device, whose times mean nothing."""

    def bench(self, *arguments, **settings):
        return ran([PROGRAM, "bench", "gemm", "--device", "cuda-simulated", "--rounds", "1", *arguments], SCALETRAIN_BACKEND_PATH=PLUGIN, **settings)

    def test_the_map_of_tiles_has_speeds_and_what_a_tile_that_is_too_large_would_take(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "map.html")
            result = json.loads(self.bench("--tiles", "--dtype", "bf16", "--shape", "72x40x48", "--json", "--report", str(page)))
            rows = {row["name"].removeprefix("72x40x48 bf16 "): row for row in result["rows"]}
            self.assertEqual((result["kernels"], result["simulated"], len(rows)), ("simulated", True, 26))
            for tile in ("tile 16x16", "tile 128x128", "chosen"):
                self.assertGreater(rows[tile]["own"], 0)
            self.assertIn("a tile of 256x64x32 takes 61440 bytes of shared memory, and 128 registers a thread for its sums", rows["tile 256x16"]["why"])
            text = page.read_text()
            self.assertIn("This device is simulated: its times say nothing about any GPU", text)
            self.assertIn("registers a thread", text)
            self.assertTrue(page.with_suffix(".png").exists())

    def test_measured_products_are_a_table_that_the_device_takes(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "products.jsonl")
            settings = {"SCALETRAIN_SIMULATED_CUBLASLT": "1", "SCALETRAIN_CUDA_PATH": GOOD}
            said = self.bench("--tune", "--dtype", "bf16", "--shape", "24x16x32", "--report", str(file), **settings)
            self.assertIn(f"use it with SCALETRAIN_CUDA_PRODUCTS={file}. This device is simulated", said)
            header, *rows = [json.loads(line) for line in file.read_text().splitlines()]
            self.assertEqual(header, {"products": 1, "device": "simulated", "cublasLt": 130100})
            # The output and both gradients, in both types; those of inputs and outputs with a bias and without.
            problems = [(row["m"], row["n"], row["k"], row["a"], row["b"], row["out"], row["bias"]) for row in rows]
            self.assertEqual(problems, [(*sizes, out, bias) for sizes, biases in (((24, 16, 32, "n", "n"), (False, True)), ((24, 32, 16, "n", "t"), (False, True)),
                                                                                 ((32, 16, 24, "t", "n"), (False,))) for out in ("bf16", "f32") for bias in biases])
            self.assertTrue(all(row["us"] > 0 and row["other_us"] > 0 and ("tile" in row) == (row["by"] == "own") for row in rows))
            listed = json.loads(info("--json", **settings, SCALETRAIN_CUDA_PRODUCTS=str(file)))["devices"]
            kernels = next(device["kernels"] for device in listed if device["name"] == "cuda-simulated")
            self.assertRegex(kernels, "^simulated cublasLt=130100,1048576 table=[0-9a-f]{16}$")

    def test_measured_products_are_one_json_object(self):
        with tempfile.TemporaryDirectory() as folder:
            file = str(pathlib.Path(folder, "products.jsonl"))
            result = json.loads(self.bench("--tune", "--dtype", "bf16", "--shape", "24x16x32,8x16x32", "--json", "--report", file,
                                           SCALETRAIN_SIMULATED_CUBLASLT="1", SCALETRAIN_CUDA_PATH=GOOD))
            self.assertEqual((result["bench"], result["simulated"], result["table"]), ("gemm", True, file))
            self.assertEqual([row["name"] for row in result["rows"]],
                             [f"{shape} to {out}" for shape in ("24x16x32 bf16", "24x32x16 bf16 transposed-b", "32x16x24 bf16 transposed-a", "8x16x32 bf16",
                                                                                   "8x32x16 bf16 transposed-b", "32x16x8 bf16 transposed-a")
                              for out in ("bf16", "f32")])
            self.assertTrue(all(row["own"] > 0 and row["fastest"] > 0 and row["unit"] == "us" for row in result["rows"]))

    def test_options_of_the_cpus_products_are_refused(self):
        for option, value in (("--threads", "0"), ("--against", "none"), ("--gemm-library", "own")):
            done = subprocess.run([PROGRAM, "bench", "gemm", "--tune", "--device", "cuda-simulated", option, value], capture_output=True, text=True, timeout=60,
                                  stdin=subprocess.DEVNULL)
            self.assertEqual((done.returncode, done.stderr), (2, f"scaletrain: {option} is an option of products of the cpu; leave it out with "
                                                                 "--device cuda-simulated\n"))

    def test_other_benchmarks_have_no_device(self):
        for arguments in (["gemm"], ["step"], ["gemm", "--tiles", "--tune"]):
            done = subprocess.run([PROGRAM, "bench", *arguments, "--device", "cuda-simulated"], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
            self.assertEqual((done.returncode, done.stderr), (2, "scaletrain: --device is an option of bench gemm --tiles and bench gemm --tune; other "
                                                                 "benchmarks are the cpu's\n"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
