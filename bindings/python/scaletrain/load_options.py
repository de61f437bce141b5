"""Options of a load: which tensors it reads, and by which names; and its report."""

from __future__ import annotations

import json
from typing import Any, Mapping, Sequence

from .reports import LoadReport


def given_map(name: str, given: Mapping[str, Any] | None) -> dict[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"{name} must be a dict, got {given!r:.60} ({type(given).__name__})")
    return dict(given or {})


def load_options(partial: bool, rename: Mapping[str, str] | None, names: Sequence[str] | None) -> tuple[Any, ...]:
    """The options in the form that the extension takes."""
    renames = given_map("rename", rename)
    return partial, list(renames), list(renames.values()), () if names is None else names


def load_report(made: LoadReport) -> LoadReport:
    """The report with its metadata parsed from JSON."""
    return made._replace(metadata=json.loads(str(made.metadata)))
