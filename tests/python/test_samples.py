"""Every sample passes the device that is asked for to the library."""

import pathlib
import runpy
import sys

import pytest

import scaletrain as st

SAMPLES = sorted(pathlib.Path(__file__).parents[2].glob("samples/python/*.py"))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_an_unknown_device_is_refused(sample, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(sample), "TEXT", "--device", "no-such-device"])
    with pytest.raises(st.InvalidArgument, match='unknown device "no-such-device"'):
        runpy.run_path(str(sample), run_name="__main__")
