"""Fails unless every function of the C headers, exported or inline, is used by scaletrain.hpp.

coverage.py INCLUDE_FOLDER CPP_FOLDER    the check
coverage.py --self-test                  the check itself, against headers that break it
"""

import pathlib
import re
import sys
import tempfile

DECLARED = re.compile(r"^(?:ST_API|static inline)\s+[^;({]*?\b(st_\w+)\s*\(", re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def texts(folder, suffix):
    return [COMMENT.sub("", path.read_text()) for path in sorted(pathlib.Path(folder).rglob("*" + suffix))]


def check(include, cpp):
    """What is wrong, a line each."""
    declared = {name for text in texts(include, ".h") for name in DECLARED.findall(text)}
    named = {name for text in texts(cpp, ".hpp") for name in re.findall(r"\bst_\w+", text)}
    if not declared:
        return [f"{include}: no function is declared with ST_API or static inline"]
    return [f"{name} is declared in {include} and not used in {cpp}" for name in sorted(declared - named)]


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "c").mkdir()
        (root / "cpp").mkdir()
        (root / "c" / "noun.h").write_text("ST_API st_status st_noun_create(int* a,\n    int b);\nST_API const char* st_last(void);\n")
        (root / "cpp" / "noun.hpp").write_text("done(st_noun_create(0, 0)); // st_last()\n")
        assert check(root / "c", root / "cpp") == [f"st_last is declared in {root / 'c'} and not used in {root / 'cpp'}"]
        (root / "cpp" / "noun.hpp").write_text("done(st_noun_create(0, 0)); st_last(); st_last_of_all();\n")
        assert check(root / "c", root / "cpp") == []
        (root / "c" / "ops.h").write_text("/* y */\nstatic inline st_value st_op_y(st_graph* graph) {\n  return st_call(graph);\n}\n")
        assert check(root / "c", root / "cpp") == [f"st_op_y is declared in {root / 'c'} and not used in {root / 'cpp'}"]
        (root / "cpp" / "ops.hpp").write_text("x.made(st_op_y(x.graph()));")
        assert check(root / "c", root / "cpp") == []
        assert check(root / "cpp", root / "cpp"), "headers without functions pass"


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    elif problems := check(*sys.argv[1:]):
        sys.exit("\n".join(problems))
