"""The scenarios of tests/scenarios print what they print in C, to the last bit."""

import json
import os
import pathlib
import struct
import subprocess

import numpy

import scaletrain as st

FILE = pathlib.Path(__file__).parents[1] / "scenarios/scenarios.txt"


class Numbers:
    def __init__(self):
        self.state = 1

    def array(self, dtype, dims):
        drawn = numpy.empty([int(dim) for dim in dims], numpy.int64)
        for i in range(drawn.size):
            self.state = (self.state * 1664525 + 1013904223) % 2**32
            drawn.flat[i] = self.state >> 8
        return (drawn % 50).astype(numpy.int32) if dtype == "i32" else drawn.astype(numpy.float32) / numpy.float32(2**23) - numpy.float32(1)


def bits(number):
    return struct.pack(">d", number).hex()


def lines_of(context, scenario):
    name, kind, options, recipe, *arrays = scenario.splitlines()
    model, seed, steps = kind.split()
    trainer = st.Trainer(st.Model.builtin(context, model, seed=int(seed), **json.loads(options)), json.loads(recipe))
    numbers = Numbers()
    for _ in range(int(steps)):
        report = trainer.step({array: numbers.array(dtype, dims) for array, dtype, *dims in map(str.split, arrays)})
        yield f"{name} {report.step} {int(report.skipped)} {bits(report.loss)} {bits(report.lr)} {bits(report.grad_norm)}"
    yield f"{name} {trainer.digest()}"


def test_every_line_is_that_of_c():
    in_c = subprocess.run([os.environ["ST_SCENARIOS_IN_C"], FILE], capture_output=True, text=True, check=True).stdout.splitlines()
    context = st.Context()
    here = [line for scenario in FILE.read_text().split("\n\n") for line in lines_of(context, scenario)]
    assert len(here) > 50
    assert here == in_c
