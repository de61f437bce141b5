"""Runs test files. If tests/run asks for reports, each test is counted.

run.py NAME FILE... [PYTEST-ARGUMENTS]
"""

import os
import sys

import pytest


def main(name: str, *arguments: str) -> int:
    report = os.environ.get("GTEST_OUTPUT", "")  # xml:FOLDER/, as for GoogleTest
    wanted = [f"--junitxml={os.path.join(report[4:], name)}.xml"] if report.startswith("xml:") else []
    return pytest.main(["-q", "-p", "no:cacheprovider", "--strict-markers", *wanted, *arguments])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
