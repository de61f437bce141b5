"""Importing the package raises if its library is missing or has another version."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import scaletrain as st

PACKAGE = pathlib.Path(st.__file__).parent


def imported(folder, **environment):
    """The last line of the error of importing the package from this folder."""
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(folder)!r}); import scaletrain; print(scaletrain.__file__)"]
    keep = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LD_LIBRARY_PATH")}
    done = subprocess.run(command, capture_output=True, text=True, env={**keep, **environment})
    return (done.stdout + done.stderr).strip().splitlines()[-1]


def test_a_missing_native_part_is_named(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "scaletrain", ignore=shutil.ignore_patterns("_native*"))
    assert re.search(r"^ImportError: scaletrain: the native extension cannot be loaded: .*_native.*next to .*handle\.py", imported(tmp_path))


def test_a_missing_library_is_named(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "scaletrain")
    extension = next((tmp_path / "scaletrain").glob("_native*.so"))
    # Like the extension of a wheel, it looks only next to itself.
    extension.write_bytes(re.sub(rb"\0/[^\0]*/capi(:[^\0]*)?\0", lambda path: b"\0" + b"$ORIGIN".ljust(len(path[0]) - 2, b"\0") + b"\0", extension.read_bytes()))
    assert re.search(r"^ImportError: scaletrain: .*libscaletrain\.so\.\S+: cannot open shared object file.* Reinstall the package", imported(tmp_path))


def test_a_library_of_another_version_is_refused(tmp_path):
    source, other = tmp_path / "other.c", tmp_path / "other.so"
    source.write_text("int st_require(int major, int minor) { return 7; } const char* st_last_error(void) { return \"this is version 7.3\"; }")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", other, source], check=True)
    assert imported(PACKAGE.parent, LD_PRELOAD=str(other)) == "scaletrain.errors.Unsupported: this is version 7.3"
    assert imported(PACKAGE.parent) == st.__file__
