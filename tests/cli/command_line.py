"""Runs scaletrain for the tests of this folder; the program is the first argument of each test."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = sys.argv.pop(1)
SANITIZED = b"__asan_" in pathlib.Path(PROGRAM).read_bytes()  # about ten times as slow

# Learns in milliseconds.
TINY = ["--layers", "1", "--width", "16", "--heads", "2", "--context", "8", "--batch", "2", "--threads", "1"]

TEXT = "".join(f"the {colour} {animal} saw {n} birds\n" for n in range(40) for colour in ("red", "blue") for animal in ("fox", "hen"))


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL)


def log_lines(path):
    """Every line as an object; keys keep the file's order."""
    return [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]


def step_lines(path):
    """The lines without evaluations."""
    return [line for line in log_lines(path) if "evaluation" not in line]


class CommandLineTest(unittest.TestCase):
    """Each test has a folder of its own with some text to train on."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.text = self.file("text.txt", TEXT)

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def train(self, *arguments):
        """Must succeed; returns its log without evaluations."""
        log = self.folder / "log.jsonl"
        done = run("train", "--log", log, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        self.output = done.stdout
        return step_lines(log)
