"""Runs the notebook in a kernel: it learns, its plot grows, and its progress bar replaces the output of a cell."""

import pathlib
import re

import jupyter_client
import nbclient
import nbformat
import pytest

import scaletrain as st

NOTEBOOK = pathlib.Path(__file__).parents[2] / "samples/python/fine_tune.ipynb"
FEWER = {".run(600, ": ".run(120, ", "STEPS, EVERY = 250, 10": "STEPS, EVERY = 60, 10"}  # fewer steps than a reader would run


def test_it_learns_and_shows_it(tmp_path):
    cells = nbformat.read(NOTEBOOK, 4)
    for whole, short in FEWER.items():
        cell = next(cell for cell in cells.cells if whole in cell.source)
        cell.source = cell.source.replace(whole, short)
    # The notebook searches the parents of its folder for the repository. This one's texts do not change.
    (tmp_path / "LICENSE").write_bytes((NOTEBOOK.parents[2] / "LICENSE").read_bytes())
    (tmp_path / "tests/bench").mkdir(parents=True)
    rows = (f"| {row} cubed | {row * 7919 % 1000} GFLOP/s | {row * 104729 % 997} of the peak |\n" for row in range(2000))
    (tmp_path / "tests/bench/README.md").write_text("".join(rows))
    kernel = jupyter_client.AsyncKernelManager(kernel_name="python3", transport="ipc", ip=str(tmp_path / "kernel"))
    done = nbclient.NotebookClient(cells, km=kernel, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()

    outputs = [output for cell in done.cells if cell.cell_type == "code" for output in cell.outputs]
    shown = [output.data for output in outputs if output.output_type == "display_data"]
    assert re.fullmatch(r"\[#+\] 120/120  loss [0-9.]+  [0-9,]+ tokens/s", shown[0]["text/plain"])
    assert len(shown) == 2 and len(shown[1]["image/png"]) > 10_000  # one plot, the last of those that replaced each other
    printed = "".join(output.text for output in outputs if output.output_type == "stream" and output.name == "stdout")
    before, after = map(float, re.search(r"validation loss ([0-9.]+), then ([0-9.]+) nats", printed).groups())
    assert after < before - 0.3
    assert (tmp_path / "fine_tuned.safetensors").exists()


def test_the_environment_names_its_device(monkeypatch):
    monkeypatch.chdir(NOTEBOOK.parent)
    monkeypatch.setenv("DEVICE", "no-such-device")
    first = next(cell for cell in nbformat.read(NOTEBOOK, 4).cells if cell.cell_type == "code")
    with pytest.raises(st.InvalidArgument, match='unknown device "no-such-device"'):
        exec(first.source, {})
