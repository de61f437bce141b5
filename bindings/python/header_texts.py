"""Writes the comments of the C headers as JSON {"st_trainer_step": "..."}. Python's docstrings quote them.

header_texts.py INCLUDE_FOLDER OUTPUT
"""

import json
import pathlib
import re
import sys

TOKEN = re.compile(r"/\*(?P<comment>.*?)\*/|ST_API\s+[^;]*?\b(?P<function>st_\w+)\s*\([^;]*;|(?P<gap>\n[ \t]*\n)", re.DOTALL)


def texts_of(header):
    """A comment belongs to the functions that follow it, up to the next comment or empty line."""
    found, text = {}, ""
    for token in TOKEN.finditer(header):
        if token["comment"] is not None:
            lines = (re.sub(r"^\s*\* ?", "", line).rstrip() for line in token["comment"].strip().splitlines())
            text = "\n".join(lines).strip()
        elif token["gap"] is not None:
            text = ""
        elif text:
            found[token["function"]] = text
    return found


def main(include, output):
    texts = {}
    for path in sorted(pathlib.Path(include).rglob("*.h")):
        texts.update(texts_of(path.read_text()))
    pathlib.Path(output).write_text(json.dumps(texts, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
