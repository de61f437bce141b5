#!/usr/bin/python3
"""Counts what a CTest run did, one suite (the label that is a folder of tests) at a time, with the cases inside a GoogleTest program counted one by one.

Usage: tally.py TESTS.json JUNIT.xml GTEST-FOLDER     as `ctest --show-only=json-v1`, `ctest --output-junit`, `GTEST_OUTPUT=xml:` wrote them
Prints `suite NAME PASSED FAILED SKIPPED SECONDS` lines, each followed by `failed CASE` lines and by `why TEXT` lines from the output of the
failed programs. A test that ended without reporting its cases (a crash, a missing program) counts as one failure.
"""

import collections
import json
import re
import sys
import xml.etree.ElementTree as xml
from pathlib import Path


SELECTIONS = {"memory", "release-only", "threads"}  # labels beside the suite's


def main(tests_file, junit_file, gtest_folder):
    programs = collections.defaultdict(list)  # suite, program -> its CTest entries
    for test in json.loads(Path(tests_file).read_text())["tests"]:
        labels = next((p["value"] for p in test.get("properties", []) if p["name"] == "LABELS"), ["unlabelled"])
        command = test.get("command", [test["name"]])
        program = Path(command[0]).name
        key = test["name"] if "python" in program or program in ("bash", "sh", "cmake") else program
        suite = next((label for label in labels if label not in SELECTIONS), "unlabelled")
        programs[suite, key].append(test["name"])
    if not programs:
        print("suite tests 0 1 0 0\nfailed no test was selected")
        return
    outcomes = {case.get("name"): case for case in xml.parse(junit_file).getroot().iter("testcase")}

    suites = collections.defaultdict(lambda: [0, 0, 0, 0.0, [], []])
    for (suite, program), tests in sorted(programs.items()):
        passed, failed, skipped, names = count_program(program, tests, outcomes, Path(gtest_folder))
        row = suites[suite]
        row[0] += passed
        row[1] += failed
        row[2] += skipped
        row[3] += sum(float(outcomes[t].get("time", 0)) for t in tests if t in outcomes)
        row[4] += names
        row[5] += [line for t in tests if t in outcomes and verdict(outcomes[t]) == "failed" for line in told(outcomes[t])]
    for suite, (passed, failed, skipped, seconds, names, lines) in sorted(suites.items()):
        print("suite", suite, passed, failed, skipped, round(seconds))
        for name in names:
            print("failed", name)
        for line in lines:
            print("why", line)


def count_program(program, tests, outcomes, folder):
    """(passed, failed, skipped, names of the failed) of one program's CTest entries."""
    verdicts = {test: verdict(outcomes.get(test)) for test in tests}
    broken = [test for test in tests if verdicts[test] == "failed"]
    reports = [f for f in folder.glob("*.xml") if re.fullmatch(re.escape(program) + r"(_\d+)?", f.stem)]
    if not reports:
        values = list(verdicts.values())
        return values.count("passed"), len(broken), values.count("skipped"), broken
    passed, skipped, names = 0, 0, []
    for report in reports:
        for case in xml.parse(report).getroot().iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                names.append(f"{case.get('classname')}.{case.get('name')} ({program})")
            elif case.find("skipped") is not None and case.get("status") is None:  # pytest's
                skipped += 1
            elif case.get("status") == "notrun" or case.get("result") in ("skipped", "suppressed"):
                skipped += case.get("result") == "skipped"
            else:
                passed += 1
    return passed, max(len(names), len(broken)), skipped, names or broken


TELLS = re.compile(r"Failure$|AssertionError|^E  |Error: |ERROR: |\*\*\*|^\s*(panic|what\(\)|Expected|Failed)|terminate called|ThreadSanitizer")


def told(case):
    """At most 12 lines of a failed test's output: those that tell what failed, each with the two lines after it; without any, the last ones."""
    lines = (case.findtext("system-out") or "").splitlines()
    near = sorted({j for i, line in enumerate(lines) if TELLS.search(line) for j in range(i, min(i + 3, len(lines)))})
    return [f"{case.get('name')}: {line[:400]}" for line in ([lines[i] for i in near] or lines[-12:])[:12] if line.strip()]


def verdict(case):
    if case is None:
        return "failed"
    if case.get("status") == "run":
        return "passed"
    message = next((s.get("message", "") for s in case.iter("skipped")), "")
    return "skipped" if case.get("status") == "disabled" or message.startswith(("SKIP_", "Disabled")) else "failed"


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
