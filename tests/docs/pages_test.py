"""Checks the output of the target `docs`: links resolve, every function and class has an entry, jars and packages hold their files.

pages_test.py BUILD     after cmake --build --preset release --target docs
"""

import html
import re
import sys
import unittest
import zipfile
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(sys.argv.pop(1)).resolve()
PAGES = BUILD / "docs"
LINK = re.compile(r"""<(?:a|img|link|script)\b[^>]*?\b(?:href|src)=["']([^"'#?]+)""")
ELSEWHERE = re.compile(r"[a-z]+:|//")


def text_of(*pages):
    return html.unescape("\n".join(page.read_text(encoding="utf-8") for page in pages))


class Pages(unittest.TestCase):
    def test_every_link_leads_to_a_file(self):
        missing = set()
        for page in PAGES.rglob("*.html"):
            for link in set(LINK.findall(page.read_text(encoding="utf-8"))):
                if not ELSEWHERE.match(link) and not (page.parent / unquote(html.unescape(link))).exists():
                    missing.add(f"{page.relative_to(PAGES)}: {link}")
        self.assertEqual(sorted(missing)[:20], [])

    def test_the_entry_page_links_each_guide_and_each_language(self):
        links = set(LINK.findall(text_of(PAGES / "index.html")))
        titles = {guide.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ") for guide in (ROOT / "docs/guides").glob("*.md")}
        linked = {title for title in titles if any(f"<title>ScaleTrain: {title}</title>" in text_of(PAGES / link)
                                                   for link in links if link.startswith("md_guides"))}
        self.assertEqual(linked, titles)
        self.assertLessEqual({"files.html", "annotated.html", "python/scaletrain.html", "java/index.html", "csharp/annotated.html"}, links)

    def test_every_c_function_is_on_its_headers_page(self):
        shown = text_of(*PAGES.glob("*_8h.html"))
        functions = set(re.findall(r"\b(st_\w+)\(", (ROOT / "tests/golden/abi.txt").read_text()))
        self.assertEqual([name for name in functions if not re.search(rf'class="el"[^>]*>{name}<', shown)], [])

    def test_every_class_of_each_language_is_there(self):
        for name in ("Context", "Graph", "Model", "Trainer", "Checkpoint", "Communicator", "LossScaler", "ShardedOptimizer"):
            self.assertTrue((PAGES / f"classscaletrain_1_1{name}.html").is_file(), name)
            self.assertTrue((PAGES / f"csharp/classScaleTrain_1_1{name}.html").is_file(), name)
            self.assertTrue((PAGES / f"java/org.scaletrain/org/scaletrain/{name}.html").is_file(), name)
            self.assertIn(f'name="{name}"', text_of(PAGES / "python/scaletrain.html"))
            self.assertIn(f"class {name}", text_of(PAGES / "python/stubs.html"))

    def test_comments_are_shown_as_they_are_written(self):
        header = (ROOT / "bindings/cpp/scaletrain/ops.hpp").read_text(encoding="utf-8")
        comment = next(line for line in re.findall(r"/// (.*)", header) if "->" in line)
        shown = html.unescape(re.sub(r"<[^>]*>", "", (PAGES / "namespacescaletrain_1_1ops.html").read_text(encoding="utf-8")))
        self.assertIn(comment, " ".join(shown.split()))

    def test_files_beside_the_packages(self):
        for jar, member in (("javadoc", "org.scaletrain/org/scaletrain/Trainer.html"), ("sources", "org/scaletrain/Trainer.java")):
            self.assertIn(member, zipfile.ZipFile(BUILD / f"jar/scaletrain-{jar}.jar").namelist())
        member = '<member name="T:ScaleTrain.Trainer">'
        self.assertIn(member, (BUILD / "csharp/ScaleTrain.xml").read_text(encoding="utf-8-sig"))
        (package,) = (BUILD / "nuget").glob("*.nupkg")
        self.assertIn(member, zipfile.ZipFile(package).read("lib/netstandard2.1/ScaleTrain.xml").decode("utf-8-sig"))


if __name__ == "__main__":
    unittest.main()
