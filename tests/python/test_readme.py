"""Runs the README's Python example unchanged."""

import pathlib
import re

README = pathlib.Path(__file__).parents[2] / "README.md"


def test_the_example_learns(capsys):
    program = re.search(r"\n```python\n(.*?)\n```", README.read_text(), re.DOTALL)
    assert program is not None
    exec(compile(program[1], str(README), "exec"), {})
    assert float(capsys.readouterr().out.split()[-1]) < 0.01
