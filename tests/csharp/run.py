"""Runs C# fixtures in one process, on Mono with NUnit's console or on .NET 8 with Runner.exe. If tests/run asks for reports, each test is counted.

run.py NAME FIXTURE,FIXTURE... TESTS.dll COMMAND...     COMMAND runs the tests; the report of nunit-console is converted to JUnit's format
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml


def main(name: str, fixtures: str, tests: str, *command: str) -> int:
    wanted = os.environ.get("GTEST_OUTPUT", "")  # xml:FOLDER/, as for GoogleTest
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.xml"
        if command[0].endswith("nunit-console"):
            words = [*command, "-nologo", "-noshadow", "-nothread", "-domain=None", f"-run:{fixtures}", f"-xml:{report}", tests]
            done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, text=True)
            cases = of_nunit(report) if report.exists() else []
        else:
            done = subprocess.run([*command, tests, fixtures, str(report)], cwd=folder, stdout=subprocess.PIPE, text=True)
            cases = xml.parse(report).getroot().findall("testcase") if report.exists() else []
    print(done.stdout)
    if wanted.startswith("xml:"):
        suite = xml.Element("testsuite", name=name)
        suite.extend(cases)
        xml.ElementTree(suite).write(os.path.join(wanted[4:], name + ".xml"))
    failed = [case.get("name") for case in cases if case.find("failure") is not None]
    if done.returncode != 0 or failed or not cases:
        print(f"{name}: {len(cases)} tests, failed: {failed}, exit status {done.returncode}")
        return 1
    return 0


def of_nunit(report: pathlib.Path) -> list[xml.Element]:
    """The cases of an NUnit 2 report in JUnit's format."""
    cases = []
    for case in xml.parse(report).getroot().iter("test-case"):
        fixture, _, test = case.get("name", "").rpartition(".")
        made = xml.Element("testcase", classname=fixture, name=test, time=case.get("time", "0"))
        if case.get("result") in ("Ignored", "Skipped"):
            xml.SubElement(made, "skipped")
        elif case.get("result") != "Success":
            xml.SubElement(made, "failure").text = "".join(case.itertext())
        cases.append(made)
    return cases


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
