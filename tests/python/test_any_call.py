"""Thousands of calls in random order with odd arguments (any_call.py): the process ends normally and no handles are left."""

import os
import pathlib
import subprocess
import sys

import pytest

from nets import long_trials

HERE = pathlib.Path(__file__).parent


@pytest.mark.parametrize("seed", range(60 if long_trials() else 3))
def test_no_call_ends_the_process(seed, tmp_path):
    play = [sys.executable, "-X", "faulthandler", HERE / "any_call.py", str(seed), "10" if long_trials() else "2"]
    done = subprocess.run(play, capture_output=True, text=True, timeout=120, cwd=tmp_path, env=os.environ)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout.split()[2]) == 0  # handles
