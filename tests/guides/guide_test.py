"""Follows a guide: writes its programs, runs its commands, and compares their output.

guide_test.py GUIDE.md BUILD

| block | |
|---|---|
| ```c, cpp, python, java, csharp, cmake | a file, named by the comment in its first line; a command must use it |
| ```sh | commands, run in order in one folder, where build/release is BUILD, after the exports of docs/README.md; each must succeed |
| ```text after ```sh | their whole output; `...` stands for any text in a line, or for any lines if alone on its line |

A guide fits two screens and names only C functions that exist; its C programs compile without a warning under -std=c99 -Wall -Wextra -Wpedantic -Wshadow.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"(?://|/\*|#) ?([\w.]+\.\w+)\b")
SCREENS = 110  # lines


def exports():
    """The lines that docs/README.md asks for in front of every guide."""
    lines = re.findall(r"^export .*$", (ROOT / "docs/README.md").read_text(encoding="utf-8"), re.MULTILINE)
    if not lines:
        raise ValueError("docs/README.md has no line that begins with `export`")
    return "\n".join(lines) + "\n"


def environment(folder):
    paths = ("PKG_CONFIG_PATH", "LD_LIBRARY_PATH", "PYTHONPATH")
    inherited = {name: value for name, value in os.environ.items() if name not in paths}
    return {**inherited, "HOME": str(folder), "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(folder)}


def pattern_of(text):
    """`...` stands for the rest of a line; alone, for any lines."""
    lines = ("(?:.*\n)*.*" if line == "..." else ".*".join(map(re.escape, line.split("..."))) for line in text.rstrip("\n").split("\n"))
    return re.compile("\n".join(lines))


class Guide:
    def __init__(self, path, build, folder):
        self.text = Path(path).read_text(encoding="utf-8")
        self.build, self.folder = Path(build).resolve(), Path(folder)
        self.environment, self.exports = environment(self.folder), exports()
        self.problems = []

    def problem(self, text):
        self.problems.append(text)

    def check(self):
        lines = self.text.count("\n")
        if lines > SCREENS:
            self.problem(f"{lines} lines; a guide has at most {SCREENS}")
        (self.folder / "build").mkdir()
        (self.folder / "build/release").symlink_to(self.build)
        for name in ("README.md", ".venv"):
            (self.folder / name).symlink_to(ROOT / name)
        if "--prefix scaletrain" not in self.text:  # the guide that installs makes its own
            (self.folder / "scaletrain").symlink_to(self.build / "tests/guides/prefix")
        headers = "".join(header.read_text(encoding="utf-8") for header in (ROOT / "capi/include/scaletrain").glob("*.h"))
        for name in sorted(set(re.findall(r"\bst_[a-z]\w+", self.text)) - set(re.findall(r"\bst_\w+", headers))):
            self.problem(f"no header has {name}")
        blocks = BLOCK.findall(self.text)
        commands = "".join(block for language, block in blocks if language == "sh")
        for language, block in blocks:
            if language not in ("sh", "text"):
                self.write(block, commands)
        for i, (language, block) in enumerate(blocks):
            if language == "sh" and not self.problems:
                self.run(block, blocks[i + 1][1] if blocks[i + 1 : i + 2] and blocks[i + 1][0] == "text" else None)
        for file in sorted(self.folder.glob("*.c")):
            self.run(f"cc -fsyntax-only -std=c99 -Wall -Wextra -Wpedantic -Wshadow -Werror $(pkg-config --cflags scaletrain) {file.name}", None)
        return self.problems

    def write(self, block, commands):
        name = NAMED.match(block)
        if not name:
            return self.problem(f"a block names no file in its first line: {block.splitlines()[0]}")
        file = self.folder / name[1]
        file.write_text(block, encoding="utf-8")
        if file.name not in commands and file.name != "CMakeLists.txt":
            self.problem(f"no command uses {file.name}")

    def run(self, commands, expected):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", self.exports + commands], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            self.problem(f"{commands}ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        elif expected is not None and not pattern_of(expected).fullmatch(done.stdout.rstrip("\n")):
            self.problem(f"{commands}prints\n{done.stdout}in place of\n{expected}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as where:
        found = Guide(sys.argv[1], sys.argv[2], where).check()
    print("\n".join(found) or "every command does what the guide says")
    sys.exit(bool(found))
