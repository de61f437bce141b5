"""The Python package covers the whole C ABI, and is typed and documented."""

import inspect
import os
import pathlib
import re
import subprocess
import sys

import pytest

import scaletrain as st
from scaletrain import handle, native

ROOT = pathlib.Path(__file__).parents[2]
PACKAGE = pathlib.Path(st.__file__).parent

# C functions without a Python call, with the reason.
ELSEWHERE = {
    r"st_\w+_init": "structs are Python's own arguments and named tuples",
    r"st_\w+_destroy": "Handle.close",
    r"st_last_error|st_last_error_info|st_callback_error": "exceptions",
    r"st_graph_op": "Graph.op is st_graph_apply, whose attributes have types",
}  # fmt: skip


def c_symbols():
    return sorted(set(re.findall(r"\b(st_\w+)\(", (ROOT / "tests/golden/abi.txt").read_text())))


def test_every_function_of_c_is_somewhere():
    missing = [name for name in c_symbols() if name not in handle.CALLS and not any(re.fullmatch(p, name) for p in ELSEWHERE)]
    assert missing == []
    assert [name for name in handle.CALLS if name not in c_symbols()] == []


def test_what_is_said_to_be_called_is_called():
    extension = next(PACKAGE.glob("_native*.so"))
    needed = subprocess.run(["nm", "-D", "--undefined-only", extension], capture_output=True, text=True, check=True).stdout
    used = set(re.findall(r"\bst_\w+", needed))
    unused = [name for name in handle.CALLS if name not in used and name != "st_graph_op"]
    assert unused == []


def test_every_class_of_the_interface_is_used():
    text = "".join(path.read_text() for path in PACKAGE.glob("*.py") if path.name != "native.py")
    wrapped = [name for name, kind in inspect.getmembers(native, inspect.isclass) if kind.__module__ == native.__name__]
    unused = [name for name in wrapped if not name.startswith("_") and f"native.{name}" not in text]
    # Created by other classes, such as a value by a graph.
    assert set(unused) <= {"ErrorInfo", "GemmInfo", "PackedMatrix", "Pending", "Value"}


def test_everything_public_is_documented():
    for name in st.__all__:
        kind = getattr(st, name)
        if not inspect.isclass(kind):
            continue
        assert kind.__doc__, name
        for member, function in vars(kind).items():
            if not member.startswith("_") and inspect.isfunction(function) and issubclass(kind, handle.Handle):
                assert function.__doc__, f"{name}.{member}"
    assert "One optimizer step" in (st.Trainer.step.__doc__ or "") and "st_trainer_step: " in st.Trainer.step.__doc__


def test_one_binary_serves_newer_pythons():
    extension = next(PACKAGE.glob("_native*.so"))
    assert extension.name == "_native.abi3.so"
    needed = subprocess.run(["nm", "-D", "--undefined-only", extension], capture_output=True, text=True, check=True).stdout
    private = [name for name in re.findall(r"\b_Py\w+", needed) if name not in LIMITED]
    assert private == []


# Functions of the limited API that begin with an underscore, since its macros use them.
LIMITED = {"_Py_Dealloc", "_Py_NoneStruct", "_Py_TrueStruct", "_Py_FalseStruct", "_Py_NotImplementedStruct", "_Py_IncRef", "_Py_DecRef",
           "_PyArg_ParseTuple_SizeT", "_Py_BuildValue_SizeT", "_PyObject_CallMethod_SizeT", "_PyObject_New"}  # fmt: skip


@pytest.mark.skipif(sys.version_info < (3, 11), reason="mypy runs on the tests' own Python")
def test_a_type_checker_accepts_package_and_samples(tmp_path):
    samples = sorted(str(path) for path in (ROOT / "samples/python").glob("*.py"))
    environment = {**os.environ, "MYPYPATH": str(PACKAGE.parent), "LD_PRELOAD": ""}
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "bindings/python/mypy.ini"), "--cache-dir", str(tmp_path)]
    slips = tmp_path / "slips.py"
    slips.write_text(SLIPS)
    # In one run, since most of the time is spent on NumPy's types. Each sample is a separate module.
    done = subprocess.run([*command, "--scripts-are-modules", str(PACKAGE), *samples, str(slips)], capture_output=True, text=True, env=environment)
    found = re.findall(r"^(.*):(\d+): error:.*\[([\w-]+)\]$", done.stdout, re.MULTILINE)
    assert [(pathlib.Path(file).name, int(line), kind) for file, line, kind in found] == [
        ("slips.py", int(line), kind) for line, kind in re.findall(r"^# line (\d+): ([\w-]+)$", SLIPS, re.MULTILINE)
    ], done.stdout


# Errors that a type checker must find in a program.
SLIPS = """import scaletrain as st

def slips(model: st.Model, trainer: st.Trainer, data: st.Data) -> None:
    trainer.stepp()
    st.Trainer(model, {"batch": 4, "learnin_rate": 1.0}, data)
    st.Recipe(batch="many")
    st.Trainer(model, {"batch": 4, "lr": 1.0}, data).run(3)

# line 4: attr-defined
# line 5: arg-type
# line 6: arg-type
"""
