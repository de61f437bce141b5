"""Programs outside this repository, built against a moved installation as their authors would, and run."""

import re
import shlex
import shutil
import unittest

from moved_tree import BUILD, CC, CMAKE, CXX, MAJOR, MINOR, PATCH, ROOT, VERSION, MovedTreeTest, needed, run

# Before 1.0 each minor version has its own ABI.
SONAME = f"libscaletrain.so.0.{MINOR}" if MAJOR == 0 else f"libscaletrain.so.{MAJOR}"


class Programs(MovedTreeTest):
    def learns(self, program, shared, **environment):
        """Runs `program`, which checks that its loss falls, and checks that it uses the library that it was built for."""
        ours = [name for name in needed(program) if name.startswith("libscaletrain")]
        self.assertEqual(ours, [SONAME] if shared else [])
        self.assertRegex(self.said(program, **environment), r"^loss [0-9.]+, then [0-9.e-]+\n$")

    def configure(self, project, *options):
        return run(CMAKE, "-G", "Ninja", "-S", self.outside / project, "-B", self.folder / project, f"-DCMAKE_PREFIX_PATH={self.tree}",
                   *options, CC=CC, CXX=CXX)

    def built(self, project):
        """The build folder of the CMake project outside/`project`."""
        done = self.configure(project, f"-DWANTED={MAJOR}.{MINOR}")
        self.assertEqual(done.returncode, 0, done.stdout)
        folder = self.folder / project
        self.said(CMAKE, "--build", folder)
        for path in (folder / "build.ninja", folder / "CMakeCache.txt"):
            for place in (BUILD, ROOT):
                self.assertNotIn(str(place), path.read_text(), path)
        return folder


class CProject(Programs):
    def test_a_project_in_c_alone_trains_with_either_library(self):
        folder = self.built("c")
        self.learns(folder / "with_shared", shared=True)
        self.learns(folder / "with_static", shared=False)

    def test_an_archive_and_a_loaded_library_in_one_process_do_not_meet(self):
        self.said(self.built("c") / "two_copies", self.library / "libscaletrain.so")

    def test_a_version_that_the_installed_one_cannot_serve_is_refused(self):
        refused = [f"{MAJOR}.{MINOR + 1}", f"{MAJOR + 1}.0", f"{MAJOR}.{MINOR}.{PATCH + 1}"]
        if MAJOR == 0:
            refused.append(f"{MAJOR}.{MINOR - 1}")
        for version in refused:
            done = self.configure("c", f"-DWANTED={version}")
            self.assertNotEqual(done.returncode, 0, version)
            self.assertIn(f"version: {VERSION}", done.stdout)


class CxxProject(Programs):
    def test_a_cxx_project_trains_with_either_library(self):
        folder = self.built("cxx")
        self.learns(folder / "with_shared", shared=True)
        self.learns(folder / "with_static", shared=False)


class PkgConfig(Programs):
    def flags(self, *options):
        return shlex.split(self.said("pkg-config", *options, "scaletrain", PKG_CONFIG_PATH=str(self.library / "pkgconfig")))

    def test_the_version_is_told(self):
        self.assertEqual(self.flags("--modversion"), [VERSION])

    def test_a_compiler_by_hand_makes_a_program_with_the_shared_library(self):
        for compiler, source in ((CC, "learn_sine.c"), (CXX, "learn_sine.cpp")):
            program = self.folder / f"{source}.shared"
            self.said(compiler, self.outside / source, "-o", program, *self.flags("--cflags", "--libs"), "-lm")
            self.learns(program, shared=True, LD_LIBRARY_PATH=str(self.library))

    def test_a_compiler_by_hand_makes_a_wholly_static_program(self):
        for compiler, source in ((CC, "learn_sine.c"), (CXX, "learn_sine.cpp")):
            program = self.folder / f"{source}.static"
            self.said(compiler, "-static", self.outside / source, "-o", program, *self.flags("--static", "--cflags", "--libs"))
            self.assertEqual(needed(program), [])
            self.learns(program, shared=False)

    def test_the_archive_alone_can_be_linked_in(self):
        program = self.folder / "learn_sine.archive"
        self.said(CC, self.outside / "learn_sine.c", "-o", program, *self.flags("--cflags"), self.library / "libscaletrain.a", "-lstdc++",
                  "-lm", "-lpthread")
        self.learns(program, shared=False)


class MpiPlugin(Programs):
    """The plug-in's source, which is installed because a binary fits only one MPI."""

    def setUp(self):
        for program in ("mpirun", "mpicxx"):
            if shutil.which(program) is None:
                self.skipTest(f"no {program}")

    def test_its_installed_source_makes_one_that_ranks_train_over(self):
        source = self.tree / "share/scaletrain/mpi"
        self.said(CMAKE, "-G", "Ninja", "-S", source, "-B", self.folder / "mpi", CC=CC, CXX=CXX)
        self.said(CMAKE, "--build", self.folder / "mpi")
        shipped = self.library / "libscaletrain_mpi.so"
        shipped.unlink(missing_ok=True)
        self.said(CMAKE, "--install", self.folder / "mpi")
        self.assertTrue(shipped.exists())
        text = self.folder / "text.txt"
        text.write_text("One fish, two fish, red fish, blue fish. " * 20)
        train = [next(self.tree.rglob("bin/scaletrain")), "train", "--data", text, "--layers", 1, "--width", 16, "--heads", 1, "--context", 8,
                 "--batch", 1, "--micro-batches", 4, "--threads", 1, "--steps", 3, "--validation", 0]
        states = []
        for launcher in ([], ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", 2]):
            log = self.folder / f"log{len(states)}"
            said = self.said(*launcher, *train, "--log", log, *(["--transport", "mpi"] if launcher else []))
            states.append(re.search(r'"state": ?"(\w+)"', log.read_text())[1])
        self.assertIn("2 ranks", said)
        self.assertEqual(*states)


if __name__ == "__main__":
    unittest.main()
