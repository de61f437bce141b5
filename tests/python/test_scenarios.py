"""The scenarios of tests/scenarios print what they print in C, to the last bit."""

import json
import os
import pathlib
import struct
import subprocess

import numpy

import scaletrain as st

FILE = pathlib.Path(__file__).parents[1] / "scenarios/scenarios.json"


class Numbers:
    def __init__(self):
        self.state = 1

    def draw(self, count):
        drawn = []
        for _ in range(count):
            self.state = (self.state * 1664525 + 1013904223) % 2**32
            drawn.append(self.state >> 8)
        return numpy.array(drawn, numpy.int64)

    def array(self, of):
        drawn = self.draw(int(numpy.prod(of["dims"]))).reshape(of["dims"])
        if of["dtype"] == "i32":
            return (drawn % of["below"]).astype(numpy.int32)
        return drawn.astype(numpy.float32) / numpy.float32(2**23) - numpy.float32(1)


def bits(number):
    return struct.pack(">d", number).hex()


def lines_of(context, scenario):
    model = st.Model.builtin(context, scenario["model"], seed=scenario["seed"], **scenario["options"])
    trainer = st.Trainer(model, scenario["recipe"])
    numbers = Numbers()
    for _ in range(scenario["steps"]):
        report = trainer.step({of["name"]: numbers.array(of) for of in scenario["batch"]})
        yield f"{scenario['name']} {report.step} {int(report.skipped)} {bits(report.loss)} {bits(report.lr)} {bits(report.grad_norm)}"
    yield f"{scenario['name']} {trainer.digest()}"


def test_every_line_is_that_of_c():
    in_c = subprocess.run([os.environ["ST_SCENARIOS_IN_C"], FILE], capture_output=True, text=True, check=True).stdout.splitlines()
    context = st.Context()
    here = [line for scenario in json.loads(FILE.read_text()) for line in lines_of(context, scenario)]
    assert len(here) > 50
    assert here == in_c
