"""Runs test classes in one JVM. If tests/run asks for reports, each test is counted.

run.py NAME CLASS,CLASS... CLASS-PATH JUNIT.jar JAVA...
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

# Messages of -Xcheck:jni when native code breaks JNI's rules. Each is a defect of ours.
RULES = ("WARNING in native method", "WARNING: JNI local refs", "FATAL ERROR in native method")


def main(name: str, classes: str, class_path: str, junit: str, *java: str) -> int:
    with tempfile.TemporaryDirectory() as reports:
        command = [*java, "-Dfile.encoding=UTF-8", "-jar", junit, "-cp", class_path, *(f"--select-class={one}" for one in classes.split(",")), "--details", "tree",
                   "--disable-banner", "--disable-ansi-colors", "--reports-dir", reports]  # fmt: skip
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        print(done.stdout)
        report = pathlib.Path(reports, "TEST-junit-jupiter.xml")
        cases = list(xml.parse(report).getroot().iter("testcase")) if report.exists() else []
        wanted = os.environ.get("GTEST_OUTPUT", "")  # xml:FOLDER/, as for GoogleTest
        if wanted.startswith("xml:") and cases:
            shutil.copy(report, os.path.join(wanted[4:], f"{name}.xml"))
    broken = [line for line in done.stdout.splitlines() if line.startswith(RULES)]
    if broken:
        print("rules of JNI were broken:", *broken, sep="\n  ")
    if not cases:
        print(f"{classes} has no tests")
    return done.returncode or len(broken) or (0 if cases else 1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
