"""The scenarios of tests/scenarios print the same output as in C, bit for bit."""

import json
import os
import pathlib
import struct
import subprocess
import tempfile

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


def line_of(name, report):
    return f"{name} {report.step} {int(report.skipped)} {bits(report.loss)} {bits(report.lr)} {bits(report.grad_norm)}"


def lines_of_run(context, name, trainer, data, steps):
    lines, resumed = [], []

    def on_step(report):
        lines.append(line_of(name, report))
        if report.step == 2:
            lines.append(line_of(name, trainer.step()))
        elif report.step == 4:
            lines.append(f"{name} evaluation {bits(trainer.evaluate(data).loss)}")
        elif report.step == 5:
            trainer.save(checkpoint)
        elif report.step == 7 and not resumed:
            resumed.append(trainer.resume(checkpoint))
        elif report.step == 8:
            try:
                trainer.run(9)
            except st.Busy:
                lines.append(f"{name} busy")

    with tempfile.TemporaryDirectory() as folder, st.Checkpoint(context, folder) as checkpoint:
        trainer.run(steps, on_step)
    return lines


def lines_of(context, scenario):
    name, kind, options, recipe, *arrays = scenario.splitlines()
    model, seed, steps, *way = kind.split()
    numbers = Numbers()

    def drawn():
        return {array: numbers.array(dtype, dims) for array, dtype, *dims in map(str.split, arrays)}

    data = st.Data.arrays(context, drawn()) if way == ["run"] else None
    trainer = st.Trainer(st.Model.builtin(context, model, seed=int(seed), **json.loads(options)), json.loads(recipe), data)
    if data is not None:
        yield from lines_of_run(context, name, trainer, data, int(steps))
    else:
        for _ in range(int(steps)):
            yield line_of(name, trainer.step(drawn()))
    yield f"{name} {trainer.digest()}"


def test_every_line_is_that_of_c():
    in_c = subprocess.run([os.environ["ST_SCENARIOS_IN_C"], FILE], capture_output=True, text=True, check=True).stdout.splitlines()
    context = st.Context()
    here = [line for scenario in FILE.read_text().split("\n\n") for line in lines_of(context, scenario)]
    assert len(here) > 50
    assert here == in_c
