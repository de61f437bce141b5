#!/usr/bin/python3
"""How the CUDA plug-in finds driver, libraries and devices, and the line that says why there is none.

usage: driver_test.py SCALETRAIN PLUGIN PROBE DRIVER LACKING_DRIVER SAMPLE_12 SAMPLE_13 NCCL LACKING_NCCL    (the last six: folders of fakes)
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM, PLUGIN, PROBE, DRIVER, LACKING, SAMPLE_12, SAMPLE_13, NCCL, LACKING_NCCL = sys.argv[1:10]
OURS = ("SCALETRAIN_CUDA_PATH", "CUDA_VISIBLE_DEVICES", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "ST_FAKE_DRIVER", "ST_FAKE_NCCL_VERSION", "SCALETRAIN_CUDA_PRODUCTS")
REMEDY = "install NVIDIA's driver, r580 or later"


def ran(command, **settings):
    environ = {name: value for name, value in os.environ.items() if name not in OURS}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, env={**environ, **settings})
    assert done.returncode == 0 and done.stderr == "", done
    return done.stdout


def row(**settings):
    """The device cuda as `scaletrain info` lists it."""
    features = json.loads(ran([PROGRAM, "info", "--json"], SCALETRAIN_BACKEND_PATH=PLUGIN, **settings))
    return next(device for device in features["devices"] if device["name"] == "cuda")


def why(count=0, **settings):
    listed = row(**settings)
    assert not listed["available"] and listed["count"] == count, listed
    return listed["why"]


def fake(kind, **settings):
    return why(SCALETRAIN_CUDA_PATH=DRIVER, ST_FAKE_DRIVER=kind, **settings)


class Driver(unittest.TestCase):
    def test_a_missing_one_is_said_with_every_place(self):
        tried = "NVIDIA's driver is missing; tried: the libraries of this process (no libcuda.so.1), {}, libcuda.so.1 (cannot open shared object " \
                f"file: No such file or directory); {REMEDY}, or set SCALETRAIN_CUDA_PATH to the folder of libcuda.so.1"
        self.assertEqual(why(), tried.format("SCALETRAIN_CUDA_PATH (not set)"))
        nothing = "/nowhere (no libcuda.so.1, nor in its lib64 and lib), /tmp/nothing (no libcuda.so.1, nor in its lib64 and lib)"
        self.assertEqual(why(SCALETRAIN_CUDA_PATH="/nowhere:/tmp/nothing"), tried.format(nothing))
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "libcuda.so.1")
            file.write_text("These are words.\n")
            self.assertEqual(why(SCALETRAIN_CUDA_PATH=folder), tried.format(f"{file} (file too short)"))

    def test_an_old_one_is_refused_with_both_versions(self):
        self.assertEqual(fake("old"), f"the driver ({DRIVER}/libcuda.so.1) is too old: it is of CUDA 12.4, this plug-in needs 13.0; {REMEDY}")

    def test_one_without_a_function_is_refused_by_its_name(self):
        self.assertEqual(why(SCALETRAIN_CUDA_PATH=LACKING), f"{LACKING}/libcuda.so.1 has no function cuDeviceGetName, so it is no driver that "
                         f"this plug-in knows; {REMEDY}")

    def test_what_it_returns_is_said(self):
        self.assertEqual(fake("silent"), f"cuDriverGetVersion returned 999; see whether nvidia-smi works, and else {REMEDY}")
        self.assertEqual(fake("mismatch"), "cuInit returned 803 (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: system has unsupported display driver / "
                         "cuda driver combination); the driver's kernel module and library differ, as after an update: restart the machine, or load the "
                         "module again")
        self.assertEqual(fake("broken"), "cuDeviceGetAttribute returned 999 (unknown); see whether nvidia-smi works on this machine, and in this "
                         "container")
        self.assertEqual(fake("stub"), f"{DRIVER}/libcuda.so.1 is the toolkit's stub for linking, not a driver; take its folder out of "
                         "SCALETRAIN_CUDA_PATH and LD_LIBRARY_PATH")

    def test_no_device_is_said_with_the_variable_that_hides_them(self):
        self.assertEqual(fake("none"), "the driver has no device; see what nvidia-smi -L lists")
        for hidden in ("", "-1"):
            self.assertEqual(fake("", CUDA_VISIBLE_DEVICES=hidden), f'the driver has no device that CUDA_VISIBLE_DEVICES="{hidden}" lets this '
                             "process see; unset it, or name one of those that nvidia-smi -L lists")

    def test_a_device_that_kernels_cannot_use_is_said_with_the_reason(self):
        self.assertEqual(fake("volta"), "Tesla V100-SXM2-16GB (sm_70, 80 SMs, 15.77 GiB) is too old: kernels need sm_80 (A100) or later")
        self.assertEqual(fake("prohibited"), "NVIDIA H100 80GB HBM3 (sm_90, 132 SMs, 79.18 GiB) is in compute mode Prohibited; an administrator "
                         "can allow it with nvidia-smi -c DEFAULT")

    def test_a_device_that_kernels_cannot_use_leaves_the_others(self):
        settings = {"SCALETRAIN_CUDA_PATH": DRIVER, "ST_FAKE_DRIVER": "mixed"}
        self.assertEqual(why(2, **settings), fake("volta"))
        done = subprocess.run([PROGRAM, "train", "--data", __file__, "--steps", "1", "--device", "cuda:1"], capture_output=True, text=True, timeout=60,
                              stdin=subprocess.DEVNULL, env={**os.environ, **settings, "SCALETRAIN_BACKEND_PATH": PLUGIN})
        self.assertRegex(done.stderr, r"cuda: cuda\w+ returned \d+ ")  # opened, by a runtime that does not know the fake driver

    def test_a_device_that_would_do_is_opened_by_cudas_runtime(self):
        """The fake driver is none that CUDA's runtime knows, which is the reason given."""
        for kind, count in (("", 1), ("mig", 1), ("two", 2)):
            said = why(count, SCALETRAIN_CUDA_PATH=DRIVER, ST_FAKE_DRIVER=kind)
            self.assertRegex(said, r"^cuda: cuda\w+ returned \d+ \(cudaError\w+: .*\)$")

    def test_the_loader_finds_it_too_and_a_context_says_the_same(self):
        self.assertEqual(why(LD_LIBRARY_PATH=DRIVER, ST_FAKE_DRIVER="volta"), fake("volta"))
        done = subprocess.run([PROGRAM, "train", "--data", __file__, "--steps", "1", "--device", "cuda"], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
                              env={**os.environ, "SCALETRAIN_BACKEND_PATH": PLUGIN, "SCALETRAIN_CUDA_PATH": DRIVER, "ST_FAKE_DRIVER": "volta"})
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f"this machine has no device cuda: {fake('volta')}", done.stderr)


class Profiles(unittest.TestCase):
    def profiles(self, kind):
        lines = ran([PROBE, "profiles"], SCALETRAIN_CUDA_PATH=DRIVER, ST_FAKE_DRIVER=kind).splitlines()
        return [line.split("; ") for line in lines]

    def test_have_what_kernels_are_chosen_by(self):
        (h100, facts, machine), (a100, others, other_machine) = self.profiles("two")
        self.assertEqual(h100, "NVIDIA H100 80GB HBM3 (sm_90, 132 SMs, 79.18 GiB)")
        self.assertEqual(facts, "registers 65536, shared 232448 of 233472, l2 52428800, 3352320000000 B/s, shared")
        self.assertEqual(a100, "NVIDIA A100-SXM4-40GB (sm_80, 108 SMs, 39.39 GiB)")
        self.assertEqual(others, "registers 65536, shared 166912 of 167936, l2 41943040, 1555200000000 B/s, shared")
        for text, kernel_class, memory in ((machine, "sm_90", 85017493504), (other_machine, "sm_80", 42297786368)):
            made = json.loads(text)
            self.assertEqual((made["device"], made["kernel_class"], made["memory_bytes"]), ("cuda", kernel_class, memory))
        self.assertTrue(self.profiles("exclusive")[0][1].endswith("exclusive"))

    def test_kernel_classes_name_the_code_that_runs(self):
        def classes(kind, later="none"):
            lines = ran([PROBE, "classes", later], SCALETRAIN_CUDA_PATH=DRIVER, ST_FAKE_DRIVER=kind).splitlines()
            form = re.compile(r"cuda (\S+) own=BUILD cublasLt=(?:none|\d+,1048576) table=none cudnn=none fp32=ieee jit=(\S+)")
            return [form.fullmatch(line).groups() for line in lines]

        self.assertEqual(classes("two"), [("sm_90a/132", "none"), ("sm_80/108", "none")])
        self.assertEqual(classes("mig"), [("sm_90a/16", "none")])
        # Code of another device of its major version, and code that the driver has compiled.
        self.assertEqual(classes("newer"), [("sm_80:sm_89/132", "none"), ("compute_80:sm_103/108", "13.1")])
        self.assertEqual(classes("newer", "later"), [("sm_80:sm_89/132", "none"), ("sm_100:sm_103/108", "none")])

    def test_of_a_slice_are_its_own(self):
        [(name, facts, machine)] = self.profiles("mig")
        self.assertEqual(name, "NVIDIA H100 80GB HBM3 MIG 1g.10gb (sm_90, 16 SMs, 9.75 GiB)")
        self.assertEqual(json.loads(machine)["memory_bytes"], 10468982784)


class Nccl(unittest.TestCase):
    """The transport nccl as `scaletrain info` lists it."""

    def row(self, plugin=PLUGIN, **settings):
        features = json.loads(ran([PROGRAM, "info", "--json"], SCALETRAIN_BACKEND_PATH=plugin, **settings))
        return next(transport for transport in features["transports"] if transport["name"] == "nccl")

    def test_is_found_and_has_never_run(self):
        joins = "devices cuda, one each: found 2.23.4, never run on hardware with more than one rank"
        found = {"SCALETRAIN_CUDA_PATH": f"{NCCL}:{DRIVER}", "ST_FAKE_NCCL_VERSION": "22304"}
        self.assertEqual(self.row(**found), {"name": "nccl", "available": True, "joins": joins})
        self.assertIn("has no device that CUDA_VISIBLE_DEVICES", self.row(**found, CUDA_VISIBLE_DEVICES="")["why"])

    def test_one_that_cannot_be_used_is_refused_with_the_reason(self):
        remedy = "install NCCL 2.14 or later (PyPI's nvidia-nccl-cu13)"
        for version, name in (("30001", "3.0.1"), ("2804", "2.8.4")):
            self.assertEqual(self.row(SCALETRAIN_CUDA_PATH=NCCL, ST_FAKE_NCCL_VERSION=version)["why"],
                             f"{NCCL}/libnccl.so.2 is NCCL {name}, this plug-in needs 2.14 or a later 2; {remedy}")
        self.assertEqual(self.row(SCALETRAIN_CUDA_PATH=LACKING_NCCL)["why"],
                         f"{LACKING_NCCL}/libnccl.so.2 has no function ncclRecv, so it is no NCCL that this plug-in knows; {remedy}")

    def test_a_missing_one_is_said_with_every_place(self):
        with tempfile.TemporaryDirectory() as folder:
            other = shutil.copy(f"{NCCL}/libnccl.so.2", pathlib.Path(folder, "libnccl.so.3"))
            row = self.row(SCALETRAIN_CUDA_PATH=f"{folder}:{DRIVER}")
            if row["available"]:  # the loader of this machine finds NVIDIA's
                self.assertRegex(row["joins"], r"found \d+\.\d+\.\d+, never run")
                return
            self.assertIn(f"NCCL is missing; tried: the libraries of this process (no libnccl.so.2), {other} (another major version, 2 is needed), "
                          f"{DRIVER} (no libnccl.so.2, nor in its lib64 and lib), libnccl.so.2 (", row["why"])
            self.assertTrue(row["why"].endswith("install NCCL (PyPI has it as nvidia-nccl-cu13), or set SCALETRAIN_CUDA_PATH to the folder of "
                                                "libnccl.so.2"), row["why"])

    def test_without_the_plug_in_of_the_devices_that_is_the_reason(self):
        row = self.row(plugin="/nowhere")
        self.assertFalse(row["available"])
        self.assertIn("libscaletrain_cuda.so", row["why"])


class Libraries(unittest.TestCase):
    """The order in which a library with a major version is looked for."""

    def found(self, *opened, wheels="no", **settings):
        return ran([PROBE, "library", "libsample.so", "13", wheels, *opened], **settings).rstrip("\n")

    def test_the_one_that_the_process_has_open_comes_first(self):
        there = f"{SAMPLE_13}/libsample.so.13"
        self.assertEqual(self.found(there, SCALETRAIN_CUDA_PATH="/nowhere"), "libsample.so.13, version 13")

    def test_then_the_folders_that_are_given_then_the_loaders(self):
        with tempfile.TemporaryDirectory() as folder:
            for below in ("", "lib64", "lib"):
                place = pathlib.Path(folder, below)
                place.mkdir(exist_ok=True)
                copy = shutil.copy(f"{SAMPLE_13}/libsample.so.13", place)
                expected = f"{folder}/{below}/libsample.so.13".replace("//", "/")
                self.assertEqual(self.found(SCALETRAIN_CUDA_PATH=f"/nowhere:{folder}", LD_LIBRARY_PATH=SAMPLE_13), f"{expected}, version 13")
                os.remove(copy)
            self.assertEqual(self.found(SCALETRAIN_CUDA_PATH=folder, LD_LIBRARY_PATH=SAMPLE_13), "libsample.so.13, version 13")

    def test_then_the_wheels_of_the_python_environment(self):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder, "lib/python3.11/site-packages/nvidia/cu13/lib")
            place.mkdir(parents=True)
            shutil.copy(f"{SAMPLE_13}/libsample.so.13", place)
            self.assertEqual(self.found(wheels="wheels", VIRTUAL_ENV=folder), f"{place}/libsample.so.13, version 13")
            self.assertIn("error: the sample is missing", self.found(VIRTUAL_ENV=folder))
            # A program in an environment of its own: its plug-in is in site-packages too.
            package = pathlib.Path(folder, "lib/python3.11/site-packages/scaletrain")
            package.mkdir()
            probe = shutil.copy(PROBE, package)
            self.assertEqual(ran([probe, "library", "libsample.so", "13", "wheels"]), f"{place}/libsample.so.13, version 13\n")

    def test_another_major_version_is_named(self):
        other, open_one = f"{SAMPLE_12}/libsample.so.12", "libsample.so.12 (open in this process, but of another major version)"
        said = self.found(other, wheels="wheels", SCALETRAIN_CUDA_PATH=SAMPLE_12)
        where = f"nvidia/*/lib of Python's packages (no libsample.so.13 next to {pathlib.Path(PROBE).parent} or in VIRTUAL_ENV, which is not set)"
        self.assertEqual(said, f"error: the sample is missing; tried: the libraries of this process (no libsample.so.13), {open_one}, {other} "
                         "(another major version, 13 is needed), libsample.so.13 (cannot open shared object file: No such file or directory), "
                         f"{where}; install a sample, or set SCALETRAIN_CUDA_PATH to the folder of libsample.so.13")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
