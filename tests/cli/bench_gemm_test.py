"""`scaletrain bench gemm` measures our products and libraries beside them, refuses wrong ones by name, and says which are not there."""

import json
import os
import pathlib
import struct
import subprocess
import sys
import unittest
import zlib

LIBRARIES = pathlib.Path(sys.argv.pop(2))

from command_line import PROGRAM, CommandLineTest  # noqa: E402

VARIABLES = [f"SCALETRAIN_{peer}" for peer in ("OPENBLAS", "BLIS", "ONEDNN", "ONEDNN_OPENMP", "MKL")]


class BenchGemm(CommandLineTest):
    def bench(self, *arguments, shape="64x48x32", **libraries):
        """Libraries of this machine are not looked for: each is a file of the test's, or one that is not there."""
        environment = dict(os.environ)
        for variable in VARIABLES:
            environment[variable] = str(libraries.get(variable[len("SCALETRAIN_") :].lower(), self.folder / "nowhere.so"))
        command = [PROGRAM, "bench", "gemm", "--rounds", "2", "--threads", "1", *(["--shape", shape] if shape else []), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, stdin=subprocess.DEVNULL)

    def result(self, *arguments, **named):
        done = self.bench("--json", *arguments, **named)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def refused(self, *arguments, words, status=2, **named):
        done = self.bench(*arguments, **named)
        self.assertEqual(done.returncode, status, (arguments, done.stdout, done.stderr))
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_json_has_the_fields_of_the_contract(self):
        result = self.result("--against", "none")
        self.assertEqual(list(result), ["bench", "rows", "geomean", "absent"])
        self.assertEqual((result["bench"], result["geomean"], result["absent"]), ("gemm", {}, {}))
        self.assertEqual([row["name"] for row in result["rows"]], ["64x48x32 fp32", "64x48x32 fp32 packed"])
        for row in result["rows"]:
            self.assertEqual(list(row), ["name", "own", "unit", "limit_fraction", "peers", "ratio"])
            self.assertEqual(row["unit"], "GFLOP/s")
            self.assertGreater(row["own"], 0)
            self.assertGreater(row["limit_fraction"], 0)

    def test_sizes_that_fit_no_tile_and_large_ones_are_right(self):
        for shape in ("1x1x1", "1x257x3", "37x1013x511", "257x1x1000"):
            done = self.bench("--against", "none", shape=shape)
            self.assertEqual((done.returncode, done.stderr), (0, ""), shape)

    def test_a_library_is_measured_beside_us(self):
        result = self.result("--against", "openblas", openblas=LIBRARIES / "libfake_blas.so")
        plain, packed = result["rows"]
        self.assertEqual(sorted(plain["peers"]), ["openblas", "openblas-haswell"])
        self.assertEqual(packed["peers"], {})  # it does not pack, and plain is compared with plain
        for peer in plain["peers"]:
            ratio = plain["ratio"][peer]
            self.assertEqual(list(ratio), ["median", "p10", "p90"])
            self.assertLessEqual(ratio["p10"], ratio["median"])
            self.assertLessEqual(ratio["median"], ratio["p90"])
            self.assertGreater(plain["peer_limit_fraction"][peer], 0)
            self.assertAlmostEqual(result["geomean"][peer], ratio["median"])
        self.assertAlmostEqual(result["geomean"]["best"], min(r["median"] for r in plain["ratio"].values()))

    def test_a_library_that_multiplies_wrongly_ends_the_run_with_its_name(self):
        for shape in ("64x48x32", "300x200x400"):  # compared everywhere; on some rows and columns
            self.refused("--against", "openblas", shape=shape, openblas=LIBRARIES / "libwrong_blas.so", status=3,
                         words=["openblas computes " + shape + " fp32 wrongly: C[", "in double precision it is"])

    def test_a_library_that_dies_is_absent_and_we_are_measured(self):
        result = self.result("--against", "openblas", openblas=LIBRARIES / "libdying_blas.so")
        self.assertEqual([row["peers"] for row in result["rows"]], [{}, {}])
        self.assertRegex(result["absent"]["openblas"], "64x48x32 fp32: its process ended without an answer, by signal 6")

    def test_absent_peers_are_named_with_the_reason(self):
        result = self.result()
        self.assertEqual(sorted(result["absent"]), ["blis", "mkl", "onednn", "onednn-openmp", "openblas", "openblas-haswell"])
        for reason in result["absent"].values():
            self.assertRegex(reason, r"^SCALETRAIN_[A-Z_]+: .*nowhere\.so: cannot open shared object file")
        done = self.bench()
        self.assertRegex(done.stdout, "(?m)^mkl is absent: SCALETRAIN_MKL: .*nowhere")

    def test_a_library_without_the_function_is_absent(self):
        result = self.result("--against", "onednn,blis", onednn=LIBRARIES / "libfake_blas.so", blis=self.file("text.so", "no library"))
        self.assertRegex(result["absent"]["onednn"], "libfake_blas.so has no dnnl_sgemm")
        self.assertRegex(result["absent"]["blis"], "SCALETRAIN_BLIS: .*text.so: file too short|invalid ELF header")

    def test_wrong_requests_are_refused(self):
        self.refused("--against", "pytorch", words=["pytorch", "openblas, blis, onednn and mkl", "none"])
        self.refused("--against", "mkl,", "--shape", "8x8", words=["--shape", '"8x8"', "MxNxK"])
        self.refused("--against", "", words=["--against"])
        for shape in ("8x8x0", "8x-1x8", "8x8x65537", "8x8x", "x8x8", "axbxc", "8x8x8x8"):
            self.refused("--against", "none", shape=shape, words=["--shape"])
        self.refused("--shapes", "all", words=["--shape ", "--shapes all"])
        self.refused("--shapes", "some", words=["--shapes", "some", "all"])
        self.refused("--report", "tiles.html", words=["--report", "--tiles"])
        self.refused("--tiles", "--shapes", "all", shape=None, words=["--tiles", "--shape MxNxK"])
        self.refused("--tiles", "--report", "tiles.png", words=["--report", "PNG"])
        self.refused("--tiles", "--report", self.folder / "nowhere" / "tiles.html", words=["cannot write", "nowhere"], status=3)

    def test_tiles_draw_a_page_and_an_image(self):
        page = self.folder / "tiles.html"
        result = self.result("--tiles", "--rounds", "1", "--report", page)
        self.assertEqual(result["rows"][-1]["name"], "64x48x32 fp32 chosen")
        self.assertIn("64x48x32 fp32 tile 16x16x32", [row["name"] for row in result["rows"]])
        text = page.read_text()
        self.assertEqual(text.count("<table>"), 2)  # tile_k 32, and the library's choice
        self.assertEqual(text.count("<td "), 2 * 3 * 3)  # 16, 32, 64 either way
        self.assertNotIn("src=", text)
        width, height, lines = self.image(self.folder / "tiles.png")
        self.assertEqual(len(lines), height * (1 + 3 * width))

    def image(self, path):
        """Width, height and the unpacked lines of a PNG whose checksums are right."""
        data = path.read_bytes()
        self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
        chunks, at = {}, 8
        while at < len(data):
            (size,) = struct.unpack(">I", data[at : at + 4])
            kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
            (checksum,) = struct.unpack(">I", data[at + 8 + size : at + 12 + size])
            self.assertEqual(checksum, zlib.crc32(kind + content))
            chunks[kind] = content
            at += 12 + size
        self.assertEqual(list(chunks), [b"IHDR", b"IDAT", b"IEND"])
        return *struct.unpack(">II", chunks[b"IHDR"][:8]), zlib.decompress(chunks[b"IDAT"])


if __name__ == "__main__":
    unittest.main()
