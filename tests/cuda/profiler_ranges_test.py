#!/usr/bin/python3
"""A training on device cuda-simulated under a profiler in the place of NVIDIA's: its ranges name the ops.

usage: profiler_ranges_test.py SCALETRAIN PLUGIN RECORDER
"""
import collections
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM, PLUGIN, RECORDER = sys.argv[1:4]
SETTINGS = ["--model", "gpt", "--layers", "1", "--heads", "1", "--width", "8", "--context", "8", "--batch", "1", "--steps", "2"]


class Ranges(unittest.TestCase):
    def ranges(self, **settings):
        with tempfile.TemporaryDirectory() as folder:
            data, written = pathlib.Path(folder, "text.txt"), pathlib.Path(folder, "ranges")
            data.write_text("A text that is long enough to train on. " * 8)
            subprocess.run([PROGRAM, "train", "--device", "cuda-simulated", "--data", data, *SETTINGS], check=True, timeout=100, cwd=folder,
                           capture_output=True, env={**os.environ, "SCALETRAIN_BACKEND_PATH": PLUGIN, "ST_RANGES": str(written), **settings})
            return [line.split() for line in written.read_text().splitlines()] if written.exists() else []

    def test_name_the_ops_that_are_given(self):
        found = self.ranges(NVTX_INJECTION64_PATH=RECORDER)
        self.assertEqual({domain for _, domain, _ in found}, {"ScaleTrain"})
        self.assertEqual({depth for depth, _, _ in found}, {"1"})
        names = collections.Counter(name for _, _, name in found)
        for name in ("embedding", "layer_norm", "fused_linear", "attention", "attention_backward", "adamw", "recording"):
            self.assertGreater(names[name], 0, names)

    def test_are_none_without_a_profiler(self):
        self.assertEqual(self.ranges(), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
