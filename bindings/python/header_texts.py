"""Writes what the C headers say about each function, as JSON {"st_trainer_step": "..."}: Python's docstrings quote it.

header_texts.py INCLUDE_FOLDER OUTPUT
"""

import json
import pathlib
import re
import sys

PIECE = re.compile(r"/\*(?P<comment>.*?)\*/|ST_API\s+[^;]*?\b(?P<function>st_\w+)\s*\([^;]*;|(?P<gap>\n[ \t]*\n)", re.DOTALL)


def texts_of(header):
    """A comment belongs to the functions behind it, up to the next comment or empty line."""
    found, text = {}, ""
    for piece in PIECE.finditer(header):
        if piece["comment"] is not None:
            lines = (re.sub(r"^\s*\* ?", "", line).rstrip() for line in piece["comment"].strip().splitlines())
            text = "\n".join(lines).strip()
        elif piece["gap"] is not None:
            text = ""
        elif text:
            found[piece["function"]] = text
    return found


def main(include, output):
    texts = {}
    for path in sorted(pathlib.Path(include).rglob("*.h")):
        texts.update(texts_of(path.read_text()))
    pathlib.Path(output).write_text(json.dumps(texts, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
