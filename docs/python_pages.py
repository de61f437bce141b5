"""Python's help() and stubs as HTML.

python_pages.py FOLDER STUBS     with the built package on PYTHONPATH; a warning fails

help() covers the package and the modules that are not re-exported by it. STUBS, a folder of .pyi files, may be absent.
"""

import html
import importlib
import pathlib
import pydoc
import re
import sys
import warnings

MODULES = ("scaletrain", "scaletrain.ops", "scaletrain.recipe_settings")


class Page(pydoc.HTMLDoc):
    def filelink(self, url, path):
        return ""

    def page(self, title, contents):
        """Links to modules without a page here, such as Python's own, become text."""
        link = re.compile(r'<a href="([\w.]+)\.html(?:#[^"]*)?">(.*?)</a>')
        contents = contents.replace('<a href=".">index</a>', '<a href="../index.html">ScaleTrain</a>')
        return super().page(title, link.sub(lambda found: found[0] if found[1] in MODULES else found[2], contents))


def stubs_page(stubs):
    """All stubs on one page, except those of the generated modules."""
    files = [file for file in sorted(pathlib.Path(stubs).glob("*.pyi")) if not file.stem.endswith("native")]
    parts = [f"<h2 id='{file.stem}'>scaletrain/{file.name}</h2>\n<pre>{html.escape(file.read_text())}</pre>\n" for file in files]
    return "<!DOCTYPE html>\n<meta charset='utf-8'>\n<title>Python: stubs</title>\n<p><a href='../index.html'>ScaleTrain</a></p>\n" + "".join(parts)


def main(folder, stubs):
    warnings.simplefilter("error")
    target = pathlib.Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    (target / "stubs.html").write_text(stubs_page(stubs))
    for name in MODULES:
        page = Page()
        (target / f"{name}.html").write_text(page.page(f"module {name}", page.document(importlib.import_module(name), name)))


if __name__ == "__main__":
    main(*sys.argv[1:])
