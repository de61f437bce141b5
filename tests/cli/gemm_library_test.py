"""`scaletrain train --gemm-library auto`: other libraries compete if asked for, and are named with their products. A library that is
missing, unloadable or wrong is reported and skipped."""

import os
import pathlib
import re
import sys
import unittest
import unittest.mock

LIBRARIES = pathlib.Path(sys.argv.pop(2))

from command_line import TINY, CommandLineTest, run  # noqa: E402

IDENTITY = "openblas-0.0.1-Three_Loops_1"
VARIABLES = ("OPENBLAS", "MKL", "ONEDNN", "ONEDNN_OPENMP")


class GemmLibrary(CommandLineTest):
    def steps(self, *arguments, **libraries):
        """Does not look for libraries of this machine: each is a file of the test's, or missing. Returns the log without times; the
        output is kept in self.output."""
        files = {f"SCALETRAIN_{name}": str(libraries.get(name.lower(), self.folder / "nowhere.so")) for name in VARIABLES}
        files["SCALETRAIN_TUNING_CACHE"] = str(self.folder / "tuning.txt")
        with unittest.mock.patch.dict(os.environ, files):
            log = self.train("--data", self.text, *TINY, "--steps", 4, *arguments)
        return [line.get("loss") for line in log[:-1]], log[-1]["state"]

    def products(self):
        return {by: int(count) for count, by in re.findall(r"(?m)^products +(\d+) by (.*)$", self.output)}

    def test_without_any_library_auto_is_own_to_the_bit(self):
        plain = self.steps("--gemm-library", "own")
        self.assertEqual(self.steps("--gemm-library", "auto"), plain)
        self.assertEqual(list(self.products()), ["own kernels"])
        self.assertEqual(len(re.findall(r"(?m)^library +not a candidate: ", self.output)), 3)

    def test_auto_says_which_libraries_there_are_and_what_they_multiply(self):
        report = self.folder / "report.html"
        there = {"openblas": "able", "mkl": "nameless", "onednn_openmp": "betaless"}
        there = {variable: LIBRARIES / f"lib{name}_blas.so" for variable, name in there.items()}
        first = self.steps("--gemm-library", "auto", "--explain", "--report", report, **there)
        self.assertIn(f"library          {IDENTITY} ({LIBRARIES / 'libable_blas.so'}) is a candidate\n", self.output)
        self.assertRegex(self.output, r"(?m)^library +not a candidate: mkl: .*libnameless_blas.so has no function cblas_sgemm_64$")
        self.assertRegex(self.output, r"(?m)^library +not a candidate: onednn: .*libbetaless_blas.so \(onednn-9.8.7\) computes wrong products$")
        products = self.products()
        self.assertGreater(sum(products.values()), 5)
        shown = len(re.findall(rf"library={IDENTITY}", self.output))
        self.assertEqual(shown, products.get(IDENTITY, 0))
        if shown:  # as fast as three loops are: they may win small products
            self.assertIn(f"\nproducts by {IDENTITY}: {shown}\n", self.output)
            self.assertIn(f"{shown} products by {IDENTITY}", report.read_text())
        recipe = self.file("recipe.json", '{"gemm_library": "auto"}')
        self.assertEqual(self.steps("--recipe", recipe, **there), first, "the cache knows the winners: the same bits")
        self.assertEqual(self.products(), products)

    def test_a_word_that_is_none_is_refused(self):
        done = run("train", "--data", self.text, *TINY, "--steps", 1, "--gemm-library", "mkl")
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1))
        for word in ("gemm_library", '"mkl"', "own", "auto"):
            self.assertIn(word, done.stderr)


if __name__ == "__main__":
    unittest.main()
