"""Code that includes backend.h alone cannot follow an address of a device's memory: each line below must not compile.

dereference_test.py COMPILER RUNTIME
"""

import subprocess
import sys
import unittest

COMPILER, RUNTIME = sys.argv[1:3]
del sys.argv[1:]

REFUSED = (
    "return *operand.data;",
    "return operand.data[0];",
    "return *static_cast<float*>(operand.data);",
    "return *reinterpret_cast<float*>(operand.data);",
    "const float* place = operand.data; return *place;",
    "float x; std::memcpy(&x, operand.data, sizeof x); return x;",
    "return *st::as<float>(operand);",
    "return static_cast<float>(*buffer.data());",
)
ALLOWED = "float x; backend.to_host(&x, operand.data + 4, sizeof x); return x;"


def errors_of(lines, header="backend/backend.h"):
    """Of the compiler, for a function of each line; empty if they compile."""
    source = f'#include <cstring>\n#include "backend/backend.h"\n#include "{header}"\n'
    for number, line in enumerate(lines):
        source += f"""float from_{number}(st::Backend& backend, const st::Buffer& buffer, const st::Operand& operand) {{
  (void)backend, (void)buffer;
#line 1 "line {number}"
  {line}
}}
"""
    command = [COMPILER, "-std=c++20", "-fsyntax-only", "-I", RUNTIME, "-x", "c++", "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=False).stderr


class Dereference(unittest.TestCase):
    def test_the_host_copies(self):
        self.assertEqual(errors_of([ALLOWED]), "")

    def test_the_host_follows_no_address(self):
        errors = errors_of(REFUSED)
        for number, line in enumerate(REFUSED):
            self.assertRegex(errors, f"line {number}:1:[0-9]+: error", line)

    def test_a_kernel_may(self):
        self.assertEqual(errors_of(["return *st::as<float>(operand);"], "backend/kernel_side.h"), "")


if __name__ == "__main__":
    unittest.main()
