"""`scaletrain bench gemm` measures our products and other libraries, refuses wrong results by name, and lists missing libraries."""

import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import unittest
import unittest.mock
import zlib

LIBRARIES = pathlib.Path(sys.argv.pop(2))
STRANGE = pathlib.Path(sys.argv.pop(2))  # libraries for --gemm-library auto

from command_line import PROGRAM, CommandLineTest  # noqa: E402

VARIABLES = [f"SCALETRAIN_{peer}" for peer in ("OPENBLAS", "BLIS", "ONEDNN", "ONEDNN_OPENMP", "MKL")]


class BenchGemm(CommandLineTest):
    def bench(self, *arguments, shape="64x48x32", **libraries):
        """Does not look for libraries of this machine: each is a file of the test's, or missing."""
        environment = dict(os.environ)
        for variable in VARIABLES:
            environment[variable] = str(libraries.get(variable[len("SCALETRAIN_") :].lower(), self.folder / "nowhere.so"))
        command = [PROGRAM, "bench", "gemm", "--rounds", "2", "--threads", "1", *(["--shape", shape] if shape else []), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, stdin=subprocess.DEVNULL)

    def result(self, *arguments, **named):
        done = self.bench("--json", *arguments, **named)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def summary_of(self, *arguments, **named):
        """For fp32; the rows are kept in self.rows."""
        result = self.result(*arguments, **named)
        self.rows = result["rows"]
        return result["summary"]["fp32"]

    def refused(self, *arguments, words, status=2, **named):
        done = self.bench(*arguments, **named)
        self.assertEqual(done.returncode, status, (arguments, done.stdout, done.stderr))
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_json_has_the_fields_of_the_contract(self):
        result = self.result("--against", "none")
        self.assertEqual(list(result), ["bench", "rows", "geomean", "absent", "summary"])
        self.assertEqual((result["bench"], result["geomean"], result["absent"]), ("gemm", {}, {}))
        self.assertEqual([row["name"] for row in result["rows"]], ["64x48x32 fp32", "64x48x32 fp32 packed"])
        for row in result["rows"]:
            self.assertEqual(list(row), ["name", "own", "unit", "limit_fraction", "peers", "ratio"])
            self.assertEqual(row["unit"], "GFLOP/s")
            self.assertGreater(row["own"], 0)
            self.assertGreater(row["limit_fraction"], 0)

    def test_each_element_has_rows_and_a_summary_of_its_own(self):
        result = self.result("--dtype", "all", "--against", "openblas", openblas=LIBRARIES / "libfake_blas.so")
        self.assertEqual([row["name"] for row in result["rows"]][::2], ["64x48x32 fp32", "64x48x32 bf16", "64x48x32 fp16"])
        self.assertEqual([bool(row["peers"]) for row in result["rows"]], [True, False, True, False, False, False])
        self.assertEqual(sorted(result["absent"]), ["openblas fp16", "openblas-haswell fp16"])
        self.assertEqual(list(result["summary"]), ["fp32", "bf16", "fp16"])
        for summary in result["summary"].values():
            self.assertEqual(summary["rows"], 2)
        rows = self.result("--dtype", "fp16", "--against", "none")["rows"]
        self.assertEqual([row["name"] for row in rows], ["64x48x32 fp16", "64x48x32 fp16 packed"])

    def test_a_bf16_product_tells_its_share_of_each_peak_and_the_limit_is_the_greatest(self):
        rows = self.result("--dtype", "bf16", "--against", "none")["rows"]
        self.assertEqual([row["name"] for row in rows], ["64x48x32 bf16", "64x48x32 bf16 packed"])
        for row in rows:
            fractions = row.get("fractions", {"fma": row["limit_fraction"]})  # a processor without bf16 has one peak
            self.assertIn("fma", fractions)
            self.assertLessEqual(row["limit_fraction"], 1.0001 * min(fractions.values()))

    def test_the_summary_is_of_the_rows(self):
        summary = self.summary_of(openblas=LIBRARIES / "libfake_blas.so")
        row = self.rows[0]
        least = min(row["ratio"], key=lambda peer: row["ratio"][peer]["median"])
        self.assertEqual(summary["worst"], {"name": row["name"], "peer": least, "ratio": row["ratio"][least]["median"], "floor": 0.97})
        for mean in (summary["best"], summary["best_blas"]):
            self.assertAlmostEqual(mean["geomean"], row["ratio"][least]["median"])
        self.assertEqual(summary["best_blas"]["floor"], 1.1)
        self.assertEqual(sorted(summary["peers"]), ["openblas", "openblas-haswell"])
        self.assertNotIn("peak", summary)  # no shape in a class with a goal

    def test_a_library_that_packs_is_in_the_packed_rows_and_the_worst_row_is_the_least(self):
        for element in ("fp32", "bf16"):
            result = self.result("--against", "mkl", "--dtype", element, mkl=LIBRARIES / "libfake_blas.so")
            ratios = {row["name"]: row["ratio"]["mkl"]["median"] for row in result["rows"]}
            self.assertEqual(list(ratios), [f"64x48x32 {element}", f"64x48x32 {element} packed"])
            worst = result["summary"][element]["worst"]
            self.assertEqual((worst["name"], worst["ratio"]), min(ratios.items(), key=lambda item: item[1]))
            self.assertEqual(result["absent"], {})
            self.refused("--against", "mkl", "--dtype", element, mkl=LIBRARIES / "libwrong_blas.so", status=3, words=["mkl computes"])

    def test_classes_of_shape_stand_beside_their_goals(self):
        summary = self.summary_of("--against", "none", shape="512x512x512")
        self.assertEqual(sorted(summary), ["peak", "rows"])
        shares = {share["class"]: share for share in summary["peak"]}
        self.assertEqual({name: share["goal"] for name, share in shares.items()},
                         {"squares of 512": 0.94, "packed, 256 rows and above": 0.98})
        for share, row in zip(summary["peak"], self.rows):
            self.assertEqual((share["rows"], share["name"]), (1, row["name"]))
            self.assertAlmostEqual(share["least"], row["limit_fraction"])
        (skinny,) = self.summary_of("--against", "none", shape="8x96x64")["peak"]
        self.assertEqual((skinny["class"], skinny["goal"], skinny["name"]), ("packed, 8 rows", 0.92, "8x96x64 fp32 packed"))

    def test_two_threads_are_compared_with_one_and_so_is_the_loop(self):
        summary = self.summary_of("--against", "none", "--threads", "2", shape="512x512x512")
        plain, packed = self.rows
        self.assertEqual(list(plain["scaling"]), ["own", "loop"])
        self.assertEqual(list(plain["scaling"]["own"]), ["median", "p10", "p90"])
        self.assertNotIn("scaling", packed)
        self.assertAlmostEqual(summary["scaling"]["least"], plain["scaling"]["own"]["median"])
        self.assertAlmostEqual(summary["scaling"]["loop"], plain["scaling"]["loop"])
        self.assertEqual((summary["scaling"]["name"], summary["scaling"]["goal"]), (plain["name"], 1.9))
        self.assertNotIn("scaling", self.summary_of("--against", "none", shape="512x512x512"))

    def test_the_table_ends_with_the_summary(self):
        done = self.bench("--against", "openblas", "--threads", "2", shape="512x512x512", openblas=LIBRARIES / "libdying_blas.so")
        for line in (r"fp32, 2 products:", r"  squares of 512: [0-9.]+ of the peak, least [0-9.]+ at 512x512x512 fp32 \(goal 0.94\)",
                     r"  threads: [0-9.]+ x one, .*; the FMA loop [0-9.]+ x"):
            self.assertRegex(done.stdout, "(?m)^" + line + "$")

    def test_sizes_that_fit_no_tile_and_large_ones_are_right(self):
        for shape in ("1x1x1", "1x257x3", "37x1013x511", "257x1x1000"):
            done = self.bench("--against", "none", shape=shape)
            self.assertEqual((done.returncode, done.stderr), (0, ""), shape)

    def test_a_library_is_measured_beside_us(self):
        result = self.result("--against", "openblas", openblas=LIBRARIES / "libfake_blas.so")
        plain, packed = result["rows"]
        self.assertEqual(sorted(plain["peers"]), ["openblas", "openblas-haswell"])
        self.assertEqual(packed["peers"], {})  # the peer does not pack, and plain is compared only with plain
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
                         words=["openblas computes " + shape + " fp32 wrongly: C[", "in double precision"])
        self.refused("--against", "openblas", "--dtype", "bf16", openblas=LIBRARIES / "libwrong_blas.so", status=3,
                     words=["openblas computes 64x48x32 bf16 wrongly: C["])

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
        for shape in ("8x8x0", "8x-1x8", "8x8x65537", "8x8x", "x8x8", "axbxc", "8x8x8x8", "8x8x8,"):
            self.refused("--against", "none", shape=shape, words=["--shape"])
        self.refused("--shapes", "all", words=["--shape ", "--shapes all"])
        self.refused("--shapes", "some", words=["--shapes", "some", "all"])
        self.refused("--dtype", "fp64", words=["--dtype", "fp64", "fp32, bf16, fp16 or all"])
        self.refused("--tiles", "--dtype", "all", words=["--tiles", "--dtype"])
        self.refused("--report", "tiles.html", words=["--report", "--tiles"])
        self.refused("--tiles", "--shapes", "all", shape=None, words=["--tiles", "--shape MxNxK"])
        self.refused("--tiles", shape="8x8x8,8x8x16", words=["--tiles measures one shape", "got 2", "8x8x8,8x8x16"])
        self.refused("--tiles", "--report", "tiles.png", words=["--report", "PNG"])
        self.refused("--tiles", "--report", self.folder / "nowhere" / "tiles.html", words=["cannot write", "nowhere"], status=3)

    def test_tune_shows_measured_tiles_beside_the_default(self):
        cache = self.folder / "tuning.txt"
        with unittest.mock.patch.dict(os.environ, SCALETRAIN_TUNING_CACHE=str(cache)):
            result = self.result("--against", "none", "--tune", shape="80x96x64")
        for row in result["rows"]:
            self.assertEqual(list(row["peers"]), ["own-tuned"])
            self.assertGreater(row["ratio"]["own-tuned"]["median"], 0)
        self.assertEqual(list(result["geomean"]), ["own-tuned"])
        self.assertIn("/80x96x64/", cache.read_text())
        self.refused("--tune", "--tiles", words=["--tune", "--tiles"])

    def test_gemm_library_auto_shows_the_fastest_beside_our_own_and_names_it(self):
        cache = self.folder / "tuning.txt"
        with unittest.mock.patch.dict(os.environ, SCALETRAIN_TUNING_CACHE=str(cache)):
            result = self.result("--against", "none", "--gemm-library", "auto", openblas=STRANGE / "libable_blas.so")
            for row in result["rows"]:
                self.assertEqual(list(row["peers"]), ["own-auto"])
                self.assertIn(row["library"], ("own", "openblas-0.0.1-Three_Loops_1"))
            self.assertIn(",openblas-0.0.1-Three_Loops_1 ", cache.read_text())
            table = self.bench("--against", "none", "--gemm-library", "auto", openblas=STRANGE / "libable_blas.so").stdout
            self.assertRegex(table, r"(?m)^  own-auto .* by (own|openblas-0\.0\.1-Three_Loops_1)$")
        self.assertNotIn("library", self.result("--against", "none")["rows"][0])
        self.refused("--gemm-library", "mkl", words=['--gemm-library is "mkl"', "own or auto"])
        self.refused("--gemm-library", "auto", "--tiles", words=["--gemm-library", "--tiles"])

    def test_tiles_draw_a_page_and_an_image(self):
        page = self.folder / "tiles.html"
        result = self.result("--tiles", "--rounds", "1", "--report", page)
        self.assertEqual(result["rows"][-1]["name"], "64x48x32 fp32 chosen")
        self.assertIn("64x48x32 fp32 tile 16x16x32", [row["name"] for row in result["rows"]])
        text = page.read_text()
        self.assertEqual(text.count("<table>"), 2)  # tile_k 32, and the library's choice
        self.assertEqual(text.count("<td "), 2 * 3 * 3)  # 16, 32, 64 in each direction
        self.assertNotIn("src=", text)
        width, height, lines = self.image(self.folder / "tiles.png")
        self.assertEqual(len(lines), height * (1 + 3 * width))
        cells = re.findall(r'<td style="background:#(\w{6});[^>]*>([\d.]+)</td>', text)
        self.assertEqual(len(cells), 2 * 3 * 3)
        for at, (colour, fraction) in enumerate(cells):  # maps from left to right, cells of 24 pixels, margins of 12
            table, row, column = at // 9, at // 3 % 3, at % 3
            x, y = 12 + table * (3 * 24 + 12) + column * 24 + 12, 12 + row * 24 + 12
            begin = y * (1 + 3 * width) + 1 + 3 * x
            self.assertEqual(lines[begin : begin + 3].hex(), colour, (table, row, column))
            for found, wanted in zip(bytes.fromhex(colour), self.viridis(float(fraction))):
                self.assertAlmostEqual(found, wanted, delta=0.005 * 4 * 159 + 0.5)  # two digits, the steepest part of the colour scale, rounding
        self.assertEqual(lines[1:4], b"\xff\xff\xff")

    def viridis(self, fraction):
        stops = [(68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)]
        at = min(fraction, 1) * 4
        low = min(int(at), 3)
        return [a + (at - low) * (b - a) for a, b in zip(stops[low], stops[low + 1])]

    def image(self, path):
        """Width, height and the unpacked lines of a PNG, after a check of its checksums."""
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
