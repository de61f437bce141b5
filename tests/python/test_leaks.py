"""Checks memory with valgrind: the library leaks nothing, reads no uninitialised memory and uses no freed memory."""

import os
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml

import pytest

TRIAL = pathlib.Path(__file__).with_name("leak_trial.py")
pytestmark = pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not here; tests/setup installs it")


def errors_of_ours(folder):
    """Kind and innermost functions of the errors that valgrind reports in the library or its extension. Errors in the interpreter do not count."""
    found = folder / "valgrind.xml"
    command = ["valgrind", "--leak-check=full", "--show-leak-kinds=definite", "--num-callers=40", "--xml=yes", f"--xml-file={found}"]
    # Makes the interpreter allocate each small block with malloc, so that valgrind tracks it.
    environment = {**os.environ, "PYTHONMALLOC": "malloc"}
    environment.pop("SCALETRAIN_ISA", None)  # valgrind's processor has no AVX-512
    done = subprocess.run([*command, sys.executable, TRIAL], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    ours = []
    for error in xml.parse(found).getroot().findall("error"):
        frames = [(frame.findtext("fn") or "?", frame.findtext("obj") or "") for frame in error.iter("frame")]
        at_import = any(function.startswith("SWIG_mod_exec") for function, _ in frames)  # a module's types are never freed
        if not at_import and any("libscaletrain" in file or "_native" in file for _, file in frames):
            ours.append((error.findtext("kind"), [function for function, _ in frames[:12]]))
    return ours


def test_nothing_is_lost_but_what_is_meant_to(tmp_path):
    found = errors_of_ours(tmp_path)
    assert {kind for kind, _ in found} == {"Leak_DefinitelyLost"}  # the deliberate leak is detected
    assert [error for error in found if not any("new_Schedule" in function for function in error[1])] == []
