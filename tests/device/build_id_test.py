#!/usr/bin/python3
"""The id of a build changes with what library and plug-ins share, and with nothing else.

usage: build_id_test.py CMAKE BUILD_ID.cmake COMPILER RUNTIME
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

CMAKE, SCRIPT, COMPILER, RUNTIME = sys.argv[1:5]


class BuildId(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.runtime = pathlib.Path(self.folder.name) / "runtime"
        for room in ("base", "gemm", "ir", "backend", "planner"):
            shutil.copytree(f"{RUNTIME}/{room}", self.runtime / room, ignore=lambda *_: ["cpu", "reference"])
        self.id = self.made()

    def made(self, settings="GNU 12", flags="-O2 -DNDEBUG"):
        out = pathlib.Path(self.folder.name) / "build_id.cpp"
        subprocess.run([CMAKE, f"-DCOMPILER={COMPILER}", f"-DFLAGS={flags}", f"-DSETTINGS={settings}", f"-DRUNTIME={self.runtime}",
                        f"-DOUT={out}", "-P", SCRIPT], check=True)
        self.needs = pathlib.Path(f"{out}.d").read_text(encoding="utf-8")
        return re.search(r'kBuildId = "([0-9a-f]{16})"', out.read_text(encoding="utf-8")).group(1)

    def edited(self, file, old, new):
        path = self.runtime / file
        text = path.read_text(encoding="utf-8")
        self.assertIn(old, text)
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        changed = self.made()
        path.write_text(text, encoding="utf-8")
        return changed

    def test_a_changed_declaration_is_another_build(self):
        headers = ("backend/backend.h", "backend/backend_plugin.h", "backend/needs.h", "base/workers.h", "base/error.h", "ir/graph.h",
                   "gemm/gemm_kernels.h", "base/machine_profile.h", "base/memory_source.h")
        for header in headers:
            self.assertNotEqual(self.edited(header, "namespace st {", "namespace st {\nstruct New {};"), self.id, header)

    def test_so_is_another_op_another_block_of_memory_and_another_compiler(self):
        row = 'ST_OP(lode, "", "value", "", slot, slot, none, "")'
        self.assertNotEqual(self.edited("ir/ops.def", "ST_OP(load,", f"{row}\nST_OP(load,"), self.id)
        self.assertNotEqual(self.edited("base/heap.cpp", "  Heap* heap;\n  size_t offset;", "  size_t offset;\n  Heap* heap;"), self.id)
        self.assertNotEqual(self.made(settings="GNU 13"), self.id)
        self.assertNotEqual(self.made(flags="-O2 -D_GLIBCXX_DEBUG"), self.id)

    def test_a_comment_and_the_folder_are_not_another_build(self):
        self.assertEqual(self.edited("backend/backend.h", "namespace st {", "// A comment.\n\nnamespace st {"), self.id)
        moved = pathlib.Path(self.folder.name) / "elsewhere"
        self.runtime.rename(moved)
        self.runtime = moved
        self.assertEqual(self.made(), self.id)

    def test_what_is_not_shared_is_not_read(self):
        for file in ("backend/backend.h", "base/heap.cpp", "ir/ops.def"):
            self.assertIn(f"{self.runtime}/{file}", self.needs, "by whole paths: the build tool does not know the compiler's folder")
        self.assertNotIn("planner/", self.needs)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
