"""Checks that the table of handle_calls.cpp has a row for each handle argument of each exported function.

The headers say which functions take which handles; SYMBOLS lists the exported functions.
usage: handle_rows.py HEADERS_FOLDER SYMBOLS TABLE [--self-test]    --self-test: checks that missing and surplus rows are found
"""
import re
import sys
from pathlib import Path

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
PROTOTYPE = re.compile(r"\bST_API\s[\w\s*]*?\b(st_\w+)\(([^;]*)\)\s*;")
OPAQUE = re.compile(r"\btypedef\s+struct\s+(st_\w+)\s+\1\s*;")
HANDLE = re.compile(r"(?:const\s+)?(st_\w+)\s*\*\s*(\w+)")
ROW = re.compile(r'\{"(st_\w+)", "(\w+)", "(\w+)",')


def declared(headers):
    """{function: {(its handle's name, kind)}} of all prototypes."""
    kinds = set(OPAQUE.findall(headers))
    functions = {}
    for name, arguments in PROTOTYPE.findall(headers):
        found = [HANDLE.fullmatch(argument.strip()) for argument in arguments.split(",")]
        functions[name] = {(f[2], f[1].removeprefix("st_")) for f in found if f and f[1] in kinds}
    return functions


def findings(headers, symbols, table):
    functions = declared(headers)
    wanted = {(name, *handle) for name in symbols for handle in functions.get(name, ())}
    rows = ROW.findall(table)
    wrong = [f"{name} is exported, but no header declares it" for name in symbols if name not in functions]
    wrong += [f"{name} ({argument}, a {kind}) has no row" for name, argument, kind in sorted(wanted - set(rows))]
    wrong += [f"{name} ({argument}, a {kind}) is in no header" for name, argument, kind in sorted(set(rows) - wanted)]
    wrong += [f"{row[0]} ({row[1]}) has two rows" for row in sorted(set(rows)) if rows.count(row) > 1]
    return wrong, len(rows)


def self_test(headers, symbols, table):
    for row in ROW.finditer(table):
        without = table[: row.start()] + table[row.end() :]
        assert findings(headers, symbols, without)[0] == [f"{row[1]} ({row[2]}, a {row[3]}) has no row"], row[0]
    new = "ST_API st_status st_model_shrink(const st_model* model,\n int64_t n, st_model** small); /* st_model* it */"
    assert findings(headers + new, [*symbols, "st_model_shrink"], table)[0] == ["st_model_shrink (model, a model) has no row"]
    assert findings(headers, [*symbols, "st_model_shrink"], table)[0] == ["st_model_shrink is exported, but no header declares it"]
    assert findings(headers, symbols, table + '{"st_model_shrink", "model", "model", 0}')[0]


def main(folder, symbols, table, *options):
    headers = COMMENT.sub(" ", "\n".join(path.read_text(encoding="utf-8") for path in sorted(Path(folder).rglob("*.h"))))
    symbols, table = Path(symbols).read_text(encoding="utf-8").split(), Path(table).read_text(encoding="utf-8")
    wrong, rows = findings(headers, symbols, table)
    if "--self-test" in options and not wrong:
        self_test(headers, symbols, table)
    print("\n".join(wrong) or f"{rows} rows for the handles of {len(symbols)} functions")
    return 1 if wrong or not rows else 0


sys.exit(main(*sys.argv[1:]))
