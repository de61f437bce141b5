"""Shared by the tests of `scaletrain checkpoint`: runs of it, and checkpoints of some tensors."""

import numpy

from command_line import CommandLineTest, run
from plain_safetensors import write_safetensors


class CheckpointTest(CommandLineTest):
    def done(self, *arguments):
        """Must succeed; returns its output."""
        done = run("checkpoint", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def refused(self, status, words, *arguments):
        done = run("checkpoint", *arguments)
        self.assertEqual(done.returncode, status, done.stderr)
        last = done.stderr.splitlines()[-1]
        self.assertTrue(last.startswith("scaletrain: "), done.stderr)
        for word in words:
            self.assertIn(word, last)
        return done

    def path(self, name):
        return self.folder / name

    def some_tensors(self):
        random = numpy.random.default_rng(3)
        return {
            "a": random.random((300, 1000), dtype="f4"),  # more than one block of its file
            "b.scalar": numpy.array(7, "i8"),
            "c.empty": numpy.zeros((0, 4), "f2"),
            "d": random.integers(0, 255, 77, dtype="u1"),
        }

    def imported(self, name="run", tensors=None, *arguments):
        source = self.path("source.safetensors")
        write_safetensors(source, tensors or self.some_tensors(), {"format": "pt", "epoch": "3"})
        self.done("import", source, self.path(name), *arguments)
        return self.path(name)

    def same(self, a, b):
        self.assertEqual(sorted(a), sorted(b))
        for name in a:
            self.assertEqual((a[name].dtype, a[name].shape, a[name].tobytes()), (b[name].dtype, b[name].shape, b[name].tobytes()), name)
