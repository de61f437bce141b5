"""Checks which toolkit of CUDA a build takes for its plug-in."""

import re
import tempfile
import unittest
from pathlib import Path

from moved_tree import BUILD, CMAKE, ROOT, run


def toolkit_of(build):
    lines = (Path(build) / "CMakeCache.txt").read_text().splitlines()
    return [line.split("=", 1)[1] for line in lines if line.startswith("ST_CUDA_TOOLKIT:")]


class CudaToolkit(unittest.TestCase):
    def configured(self, *options, **environment):
        """What CMake says of the plug-in, and the toolkit that it has found."""
        with tempfile.TemporaryDirectory() as build:
            done = run(CMAKE, "-S", ROOT, "-B", build, "-G", "Ninja", "-D", "ST_BUILD_TESTS=OFF", *options, **environment)
            self.assertEqual(done.returncode, 0, done.stdout)
            return [line for line in done.stdout.splitlines() if "libscaletrain_cuda.so" in line], toolkit_of(build)

    def test_an_option_leaves_the_plug_in_out(self):
        self.assertEqual(self.configured("-D", "ST_CUDA=OFF"), (["-- libscaletrain_cuda.so is not built: ST_CUDA is OFF"], []))

    def test_a_toolkit_of_cuda_12_does_not_hide_another(self):
        with tempfile.TemporaryDirectory() as old:
            header = Path(old) / "include/cuda.h"
            header.parent.mkdir()
            header.write_text("#define CUDA_VERSION 12040\n")
            said, taken = self.configured(CUDA_PATH=old)
        if re.search(r"/usr/local/cuda|/\.venv/", "".join(toolkit_of(BUILD))):  # found where every build looks
            self.assertEqual(taken, toolkit_of(BUILD))
        self.assertNotEqual(taken, [old])
        if taken == ["ST_CUDA_TOOLKIT-NOTFOUND"]:
            self.assertEqual(said, ["-- libscaletrain_cuda.so is not built: no toolkit of CUDA 13 (tests/setup --cuda, or CUDA_PATH)"])


if __name__ == "__main__":
    unittest.main()
