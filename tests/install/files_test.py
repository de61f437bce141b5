"""Checks the contents of an installed tree, and what its files must not contain."""

import re
import unittest
from pathlib import PurePath

from moved_tree import BUILD, ROOT, MovedTreeTest, needed

MEGABYTE = 1 << 20
PLUGIN = BUILD / "runtime/backend/cuda/libscaletrain_cuda.so"  # built where there is a toolkit of CUDA
RUNTIME = re.compile(r"(libc|libm|libstdc\+\+|libgcc_s|ld-linux[^.]*)\.so")


class Files(MovedTreeTest):
    def files(self):
        return [path for path in self.tree.rglob("*") if path.is_file() and not path.is_symlink()]

    def shown(self, *command):
        """Names of the symbols that `nm` lists."""
        lines = (line.split() for line in self.said("nm", *command).splitlines())
        return sorted(fields[2].split("@")[0] for fields in lines if len(fields) == 3 and fields[1] != "A")

    def test_everything_a_host_needs_is_there(self):
        found = {str(path.relative_to(self.tree)) for path in self.files()}
        headers = {f"include/scaletrain/{path.name}" for path in (ROOT / "capi/include/scaletrain").glob("*.h")}
        headers |= {f"include/{path.relative_to(ROOT / 'bindings/cpp')}" for path in (ROOT / "bindings/cpp").rglob("*.hpp")}
        library = str(self.library.relative_to(self.tree))
        if PLUGIN.exists():
            self.assertIn(f"{library}/libscaletrain_cuda.so", found)
        self.assertEqual([name for name in found if "simulated" in name], [])
        for name in {"bin/scaletrain", f"{library}/libscaletrain.a", f"{library}/pkgconfig/scaletrain.pc", "share/doc/scaletrain/LICENSE",
                     f"{library}/cmake/scaletrain/scaletrainConfig.cmake", "share/doc/scaletrain/THIRD_PARTY.md", *headers}:
            self.assertIn(name, found)

    def test_no_file_holds_a_path_of_the_build(self):
        for path in self.files():
            content = path.read_bytes()
            for place in (BUILD, ROOT, self.folder / "first"):
                self.assertNotIn(str(place).encode(), content, path)

    def test_the_shared_library_needs_the_c_and_cxx_runtime_only(self):
        names = needed(self.library / "libscaletrain.so")
        self.assertIn("libc.so.6", names)
        self.assertEqual([name for name in names if not RUNTIME.match(name)], [])

    @unittest.skipUnless(PLUGIN.exists(), "no toolkit of CUDA")
    def test_the_plug_in_for_gpus_is_found_and_needs_no_library_of_cudas(self):
        file = self.library / "libscaletrain_cuda.so"
        self.assertEqual([name for name in needed(file) if not RUNTIME.match(name)], [])
        self.assertEqual(self.shown("-D", "--defined-only", file), ["st_backend_v1"])
        lines = self.said(self.tree / "bin/scaletrain", "info", SCALETRAIN_CUDA_PATH="/nowhere", CUDA_VISIBLE_DEVICES="").splitlines()
        (line,) = [line for line in lines if re.match(r"device +cuda ", line)]
        self.assertRegex(line, "missing: NVIDIA's driver is missing; tried: .*; install NVIDIA's driver|CUDA_VISIBLE_DEVICES")  # a driver may be there

    def test_both_libraries_show_the_same_functions_and_nothing_else(self):
        shared = self.shown("-D", "--defined-only", self.library / "libscaletrain.so")
        static = self.shown("-g", "--defined-only", self.library / "libscaletrain.a")
        self.assertIn("st_trainer_step", shared)
        self.assertEqual([name for name in shared if not name.startswith("st_")], [])
        self.assertEqual(static, shared)

    def test_the_archives_functions_do_not_leave_the_program_they_are_linked_into(self):
        lines = self.said("readelf", "-sW", self.library / "libscaletrain.a").splitlines()
        open_to_all = [line for line in lines if re.search(r" GLOBAL +(DEFAULT|PROTECTED) +[0-9]+ ", line)]
        self.assertEqual(open_to_all, [])

    def test_stripped_the_shared_library_has_at_most_eight_megabytes(self):
        stripped = self.install(self.folder / "stripped", "--strip")
        size = next(stripped.rglob("libscaletrain.so")).stat().st_size
        print(f"libscaletrain.so, stripped: {size / MEGABYTE:.2f} MB")
        self.assertLessEqual(size, 8 * MEGABYTE)
        self.assertIn("st_trainer_step", self.shown("-g", "--defined-only", next(stripped.rglob("libscaletrain.a"))))

    def test_the_moved_command_line_finds_its_library(self):
        self.assertIn("cpu", self.said(self.tree / "bin/scaletrain", "info"))

    def test_the_components_share_the_tree_out(self):
        parts = [self.install(self.folder / part, "--component", part) for part in ("runtime", "dev", "gloo", "cuda")]
        listed = [{str(path.relative_to(part)) for path in part.rglob("*") if not path.is_dir()} for part in parts]
        whole = {str(path.relative_to(self.tree)) for path in self.tree.rglob("*") if not path.is_dir()}
        self.assertEqual(set().union(*listed), whole)
        self.assertEqual(sum(map(len, listed)), len(whole))
        self.assertLessEqual({PurePath(name).name for name in listed[2]}, {"libscaletrain_gloo.so"})  # empty if Gloo was not found
        self.assertLessEqual({PurePath(name).name for name in listed[3]}, {"libscaletrain_cuda.so"})
        self.assertIn("cpu", self.said(parts[0] / "bin/scaletrain", "info"))


if __name__ == "__main__":
    unittest.main()
