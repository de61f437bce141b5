"""Installs the build, moves the installed tree elsewhere, and gives the tests of this folder a working folder away from the source.

The first argument of each test is the build folder. CMAKE, CC and CXX in the environment name the tools."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUTSIDE = pathlib.Path(__file__).resolve().parent / "outside"
BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
CMAKE = os.environ.get("CMAKE", "cmake")
CC = os.environ.get("CC", "cc")
CXX = os.environ.get("CXX", "c++")

# Variables that could lead a compiler, a loader or CMake to another copy.
FOREIGN = ("CMAKE_PREFIX_PATH", "PKG_CONFIG_PATH", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "LD_LIBRARY_PATH")
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in FOREIGN}

HEADER = (ROOT / "capi/include/scaletrain/export.h").read_text()
MAJOR, MINOR, PATCH = (int(re.search(rf"ST_VERSION_{part} (\d+)", HEADER)[1]) for part in ("MAJOR", "MINOR", "PATCH"))
VERSION = f"{MAJOR}.{MINOR}.{PATCH}"


def run(*command, **environment):
    """The finished process; its output includes stderr."""
    return subprocess.run([*map(str, command)], env={**ENVIRONMENT, **environment}, cwd="/", stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)


def needed(program):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", program).stdout)


class MovedTreeTest(unittest.TestCase):
    """Each class of tests installs once: `tree` is the moved tree, `folder` the class's own folder."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.tree = cls.install(cls.folder / "first").rename(cls.folder / "moved here")
        cls.library = next(cls.tree.rglob("libscaletrain.so")).parent
        cls.outside = pathlib.Path(shutil.copytree(OUTSIDE, cls.folder / "outside"))

    @classmethod
    def install(cls, prefix, *options):
        done = run(CMAKE, "--install", BUILD, "--prefix", prefix, *options)
        if done.returncode != 0:
            raise AssertionError(done.stdout)
        return prefix

    def said(self, *command, **environment):
        done = run(*command, **environment)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}")
        return done.stdout
