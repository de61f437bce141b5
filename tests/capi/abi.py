"""Checks whether programs built against earlier headers still run: compares the outline of the public ABI with tests/golden/abi.txt.

The outline has one line per function, field and typedef, with types, sizes and offsets in bytes. abidw reads them from debug
information, so the headers become a small library in which every exported function has its declared type and an empty body. Every
difference fails, additions too; for an intended change, rewrite the outline with --write and say in the commit which programs break.
usage: abi.py HEADERS OUTLINE [--write] | abi.py HEADERS --self-test
"""
import difflib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import xml.etree.ElementTree

DECLARATION = re.compile(r"ST_API\s+([^;{}]*?)\b(st_\w+)\(([^;]*?)\);", re.S)


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def library_of(headers, out):
    """A library with every function that the headers declare, compiled with debug information."""
    source = ["#include <scaletrain/scaletrain.h>"]
    names = set()
    for header in sorted(headers.glob("scaletrain/*.h")):
        for result, name, parameters in DECLARATION.findall(without_comments(header.read_text(encoding="utf-8"))):
            if name in names:
                continue
            names.add(name)
            result = " ".join(result.split())
            source.append(f"{result} {name}({' '.join(parameters.split())}) {{ return 0; }}")
    if not names:
        sys.exit(f"abi.py: no function is declared in {headers}")
    file = out.with_suffix(".c")
    file.write_text("\n".join(source) + "\n", encoding="utf-8")
    subprocess.run(["cc", "-std=gnu11", "-g", "-O0", "-fPIC", "-shared", "-fvisibility=hidden", "-w", "-DST_BUILDING", "-I", str(headers),
                    "-o", str(out), str(file)], check=True)
    return out


class Outline:
    """The text of one library's types and functions, from abidw's XML."""

    def __init__(self, library):
        command = ["abidw", "--no-show-locs", "--exported-interfaces-only", str(library)]
        dump = subprocess.run(command, capture_output=True, text=True, check=True)
        self.root = xml.etree.ElementTree.fromstring(dump.stdout)
        self.types = {node.get("id"): node for node in self.root.iter() if node.get("id")}

    def name_of(self, identifier):
        """A type as C writes it; `(*)` stands for the place of a function pointer's name."""
        node = self.types[identifier]
        if node.tag == "pointer-type-def":
            name = self.name_of(node.get("type-id"))
            return name if "(*)" in name else name + "*"
        if node.tag == "qualified-type-def":
            name = self.name_of(node.get("type-id"))
            return name + " const" if name.endswith("*") else "const " + name
        if node.tag == "array-type-def":
            return f"{self.name_of(node.get('type-id'))}[{node.find('subrange').get('length')}]"
        if node.tag == "function-type":
            return self.signature_of(node, "(*)")
        return node.get("name")

    def signature_of(self, node, name):
        parameters = [self.name_of(parameter.get("type-id")) for parameter in node.findall("parameter")]
        return f"{self.name_of(node.find('return').get('type-id'))} {name}({', '.join(parameters) or 'void'})"

    def lines_of(self, node):
        if node.tag == "typedef-decl":
            name, target = node.get("name"), self.name_of(node.get("type-id"))
            return [f"typedef {name}: {target}"] if name.startswith("st_") and name != target else []
        if node.tag == "function-decl":
            return textwrap.wrap(self.signature_of(node, node.get("name")), 140, subsequent_indent="  ")
        if node.tag == "class-decl" and not node.get("is-declaration-only"):
            fields = [(int(member.get("layout-offset-in-bits")) // 8, member.find("var-decl")) for member in node.findall("data-member")]
            return [f"struct {node.get('name')}: {int(node.get('size-in-bits')) // 8} bytes"] + [
                f"  {offset:3} {field.get('name')}: {self.name_of(field.get('type-id'))}" for offset, field in fields]
        return []

    def text(self):
        blocks = sorted(block for block in map(self.lines_of, self.root.iter()) if block)
        return "".join(line + "\n" for block in blocks for line in block)


def outline_of(headers, library):
    return Outline(library_of(headers, library)).text()


def self_test(headers, folder):
    """Must reject a changed field, a removed function and a narrower parameter, and accept unchanged headers."""
    base = outline_of(headers, folder / "base.so")
    samples = {
        "the same headers": (None, True),
        "a field in the middle": (("context.h", "int64_t memory_limit;", "int64_t memory_limit, another;"), False),
        "a widened field": (("context.h", "int32_t threads;", "int64_t threads;"), False),
        "a removed function": (("context.h", "ST_API st_status st_context_destroy(st_context* context);", ""), False),
        "a narrower parameter": (("trainer.h", "st_trainer_run(st_trainer* trainer, int64_t steps", "st_trainer_run(st_trainer* trainer, int32_t steps"), False),
        "a callback's parameter": (("context.h", "(*st_free_fn)(void* user,", "(*st_free_fn)(int user,"), False),
    }
    failures = 0
    for number, (name, (change, fits)) in enumerate(samples.items()):
        changed = folder / f"sample{number}"
        shutil.copytree(headers, changed)
        if change is not None:
            file, old, new = change
            path = changed / "scaletrain" / file
            text = path.read_text(encoding="utf-8")
            if old not in text:
                sys.exit(f"abi.py: {file} has no \"{old}\" for the sample \"{name}\" any more; choose another")
            path.write_text(text.replace(old, new), encoding="utf-8")
        if (outline_of(changed, folder / f"sample{number}.so") == base) != fits:
            failures += 1
            print(f"{name}: the outline {'differs' if fits else 'is the same'}", file=sys.stderr)
    print(f"{len(samples)} samples, {failures} wrong")
    return 1 if failures else 0


def main(headers, *arguments):
    headers = pathlib.Path(headers)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        if arguments == ("--self-test",):
            return self_test(headers, folder)
        golden = pathlib.Path(arguments[0])
        outline = outline_of(headers, folder / "libscaletrain.so")
    if arguments[1:] == ("--write",):
        golden.write_text(outline, encoding="utf-8")
        return 0
    promised = golden.read_text(encoding="utf-8").splitlines()
    difference = "\n".join(difflib.unified_diff(promised, outline.splitlines(), "promised", "headers", lineterm=""))
    if difference:
        print(f"The headers differ from {golden}; if that is meant: abi.py HEADERS {golden} --write\n{difference}", file=sys.stderr)
    return 1 if difference else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
