"""Runs the reader shown in runtime/checkpoint/README.md on the golden checkpoints and compares with their formula."""

import json
import os
import re
import sys
import unittest

import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GOLDEN = os.path.join(ROOT, "tests", "golden", "checkpoint-v1")
MASK = 2**64 - 1


def formula_bytes(name, count, seed=1):
    """The formula of tests/unit/checkpoint/formula_checkpoint.cpp."""
    out = bytearray()
    for i in range(count):
        x = (i * 0x9E3779B97F4A7C15 + seed) & MASK
        for byte in name.encode():
            x = (x ^ byte) * 0x100000001B3 & MASK
        out.append((x ^ x >> 29) >> 32 & 255)
    return bytes(out)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return f"{crc ^ 0xFFFFFFFF:08x}"


class ReadCheckpoint(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(ROOT, "runtime", "checkpoint", "README.md"), encoding="utf-8") as file:
            self.readme = file.read()
        scope = {}
        exec(re.search(r"```python\n(.*?)```", self.readme, re.DOTALL).group(1), scope)
        self.load = scope["load"]

    def test_reads_what_the_formula_says(self):
        shapes = {"block.weight": (27, 40), "block.bias": (40,), "none": (0, 40), "moment1.block.weight": (27, 40),
                  "deep": (1, 2, 1, 1, 3, 1, 1, 1), "one": (), '"größe"\n': (3,), "codes": (1500,), "mask": (7,)}
        for cut in ("whole", "cut-in-3"):
            tensors, manifest = self.load(os.path.join(GOLDEN, cut))
            self.assertEqual(manifest["step"], 120)
            self.assertEqual({name: tensor.shape for name, tensor in tensors.items()}, shapes)
            for name, tensor in tensors.items():
                self.assertEqual(tensor.tobytes(), formula_bytes(name, tensor.nbytes), name)

    def test_checksums_are_those_of_the_description(self):
        for cut in ("whole", "cut-in-3"):
            with open(os.path.join(GOLDEN, cut, "manifest.json"), "rb") as file:
                text = file.read()
            self.assertEqual(text[-22:], f',"crc32c":"{crc32c(text[:-22])}"}}\n'.encode())
            manifest = json.loads(text)
            for listed in manifest["files"]:
                with open(os.path.join(GOLDEN, cut, listed["name"]), "rb") as file:
                    content = file.read()
                self.assertEqual(len(content), listed["bytes"])
                self.assertEqual(crc32c(content[:listed["header_bytes"]]), listed["header_crc32c"])
            for tensor in manifest["tensors"]:
                for piece in tensor["pieces"]:
                    size = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "BF16": 2, "F16": 2}.get(tensor["dtype"], 1)
                    content = formula_bytes(tensor["name"], piece["end"] * size)[piece["begin"] * size:]
                    self.assertEqual(crc32c(content), piece["crc32c"])  # each is smaller than a MiB

    def test_the_example_is_real(self):
        with open(os.path.join(GOLDEN, "cut-in-3", "manifest.json"), encoding="utf-8") as file:
            text = file.read()
        example = re.search(r"```\n(\{\"format\".*?)```", self.readme, re.DOTALL).group(1)
        for part in re.split(r"\.\.|\n *", example):
            self.assertIn(part.strip(",[]"), text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
