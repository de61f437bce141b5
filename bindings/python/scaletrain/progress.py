"""A progress bar of a run: a line that is rewritten in a terminal, or an output cell that is replaced in a notebook."""

from __future__ import annotations

import sys
import time
from typing import Any, TextIO

from .reports import StepReport

_WIDTH = 28
_SECONDS = 0.1  # between two updates


class Progress:
    """Called with the report of each step. finish() leaves the last state of the bar on the screen."""

    def __init__(self, steps: int, stream: TextIO | None = None) -> None:
        self._steps = steps
        self._stream = sys.stderr if stream is None else stream
        self._cell = _notebook_cell() if stream is None else None
        self._next = 0.0
        self._shown = ""

    def __call__(self, report: StepReport) -> None:
        now = time.monotonic()
        if now >= self._next or report.step >= self._steps:
            self._next = now + _SECONDS
            self._show(self.line(report))

    def line(self, report: StepReport) -> str:
        share = min(1.0, report.step / self._steps) if self._steps > 0 else 1.0
        full = int(share * _WIDTH)
        bar = "#" * full + "." * (_WIDTH - full)
        rate = f"{report.tokens_per_second:,.0f} tokens/s" if report.tokens > 0 else f"{report.milliseconds:.2f} ms a step"
        return f"[{bar}] {report.step}/{self._steps}  loss {report.loss:.4f}  {rate}"

    def finish(self) -> None:
        if self._cell is None and self._shown:
            self._stream.write("\n")
            self._stream.flush()

    def _show(self, line: str) -> None:
        if self._cell is not None:
            self._cell.update({"text/plain": line}, raw=True)
        elif self._stream is not None and self._stream.isatty():
            self._stream.write("\r" + line.ljust(len(self._shown)))
            self._stream.flush()
            self._shown = line


def _notebook_cell() -> Any:
    """The notebook cell that shows the bar; None outside a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or type(shell).__name__ != "ZMQInteractiveShell":
        return None
    from IPython.display import display  # type: ignore[import-not-found, unused-ignore]

    return display({"text/plain": ""}, raw=True, display_id=True)
