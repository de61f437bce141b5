#!/usr/bin/python3
"""Injects one fault after the other into the library and reports which of them the tests catch.

Usage: tests/mutations/mutate.py [NAME...] [--list FILE] [--results FILE] [--tree FOLDER] [--near-only]
       tests/mutations/mutate.py --check      whether each fault's text still stands once in the working tree; builds nothing

The faults are those of mutations.toml, or those with the given names. Each is built and tested in a copy of the committed tree
(build/mutations, kept between runs with its build): first the programs among the tests of the fault's own room, or of its `near`, then the
rest of those tests, then all tests. Each run uses the commands of tests/run without --all and stops at the first failure. A fault with `preset = "tsan"` is run by the tests labelled
`threads` under ThreadSanitizer. A fault that does not compile is reported as such: it is a defect of the list.

Results are one line per fault (TAB: name, verdict, the first test that failed, seconds), appended to the results file as they come. A fault
that is already in it is skipped. Faults that --near-only leaves open, and those of which a test's program was not there, are not in it.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Others: the room's first name.
NOT_RUN = ": not run"  # a test whose program is not there
NEAR = {"model": "train", "backend": "backend|conformance", "capi/src": "capi", "capi/cli": "cli", "bindings/cpp": "hpp"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--list", default=Path(__file__).with_name("mutations.toml"), type=Path)
    parser.add_argument("--results", default=ROOT / "build/mutations.tsv", type=Path)
    parser.add_argument("--tree", default=ROOT / "build/mutations", type=Path)
    parser.add_argument("--near-only", action="store_true", help="leave what its own room's tests do not catch for another run")
    parser.add_argument("--check", action="store_true", help="only whether the working tree has each fault's text once")
    wanted = parser.parse_args()

    mutations = tomllib.loads(wanted.list.read_text())["mutation"]
    if wanted.check:
        sys.exit("\n".join(filter(None, (misplaced(m, ROOT) for m in mutations))) or None)
    unknown = set(wanted.names) - {m["name"] for m in mutations}
    if unknown:
        sys.exit(f"mutations: no such name: {' '.join(sorted(unknown))}")
    tree = Tree(wanted.tree)
    wanted.results.parent.mkdir(parents=True, exist_ok=True)
    done = {line.split("\t")[0] for line in wanted.results.read_text().splitlines()} if wanted.results.exists() else set()
    unsettled = []  # verdicts that another run may change
    # Grouped by preset, since each tree is built once and then file by file.
    for mutation in sorted(mutations, key=lambda m: m.get("preset", "release")):
        if mutation["name"] in done or (wanted.names and mutation["name"] not in wanted.names):
            continue
        start = time.time()
        verdict, test = tree.trial(mutation, wanted.near_only)
        row = [mutation["name"], verdict, test, str(round(time.time() - start))]
        print(*row, sep="\t", flush=True)
        if verdict in ("caught", "survived", "does not compile"):
            with wanted.results.open("a") as results:
                print(*row, sep="\t", file=results)
        else:
            unsettled.append(verdict)
    rows = [line.split("\t") for line in wanted.results.read_text().splitlines()] if wanted.results.exists() else []
    verdicts = unsettled + [row[1] for row in rows]
    print(", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in sorted(set(verdicts))))


def misplaced(mutation, folder):
    """Why the fault cannot be injected, or nothing."""
    file = folder / mutation["file"]
    count = file.read_text().count(mutation["find"]) if file.exists() else 0
    return "" if count == 1 else f"mutations: {mutation['name']}: {mutation['file']} has the text {count} times, not once"


class Tree:
    """A copy of the committed tree with its builds."""

    def __init__(self, folder):
        self.folder = folder
        if not (folder / ".git").exists():
            run(["git", "clone", "--quiet", str(ROOT), str(folder)], ROOT)
        run(["git", "fetch", "--quiet", "origin", "HEAD"], folder)
        run(["git", "checkout", "--quiet", "--force", "--detach", "FETCH_HEAD"], folder)
        venv = folder / ".venv"
        if not venv.exists() and (ROOT / ".venv").exists():
            venv.symlink_to(ROOT / ".venv")
        self.configured = set()

    def trial(self, mutation, near_only):
        if fault := misplaced(mutation, self.folder):
            sys.exit(fault)
        file = self.folder / mutation["file"]
        text = file.read_text()
        preset = mutation.get("preset", "release")
        self.configure(preset)
        try:
            file.write_text(text.replace(mutation["find"], mutation["replace"]))
            return self.verdict(preset, mutation.get("near") or near_tests(mutation["room"]), near_only)
        finally:
            file.write_text(text)

    def configure(self, preset):
        if preset not in self.configured:
            run(["cmake", "--preset", preset], self.folder)
            self.configured.add(preset)

    def verdict(self, preset, near, near_only):
        only = ["-L", "^threads$"] if preset == "tsan" else ["-LE", "^floors$"]
        programs, others = self.listed(preset, [*only, "-R", near])
        whole = ["thread_tests" if preset == "tsan" else "all"]
        trials = [(sorted(set(programs.values())), programs)] if programs else []
        trials += [(whole, others)] if others else []
        if near_only and not trials:
            sys.exit(f"mutations: no test is called {near}: correct `near`")
        trials += [] if near_only else [(whole, [])]
        for targets, names in trials:
            if not self.build(preset, targets):
                return "does not compile", ""
            failed = self.first_failure(preset, [*only, *(["-R", exactly(names)] if names else [])])
            if failed:
                return ("not run" if failed.endswith(NOT_RUN) else "caught"), failed
        return ("open" if near_only else "survived"), ""

    def listed(self, preset, selection):
        """The selected tests: {name: target} of those that a target builds, and the names of others, which need all targets."""
        build = self.folder / "build" / preset
        listed = json.loads(output(["ctest", "--test-dir", str(build), *selection, "--show-only=json-v1"], self.folder))
        rules = output(["ninja", "-C", str(build), "-t", "targets", "all"], self.folder)
        known = {rule.split(": ")[0] for rule in rules.splitlines()}
        programs, others = {}, []
        for test in listed["tests"]:
            # A test whose program is not built yet has no command. Its name is that of its target, unless it runs another test's program.
            target = os.path.relpath(test["command"][0], build) if "command" in test else test["name"]
            if target in known:
                programs[test["name"]] = target
            else:
                others.append(test["name"])
        return programs, others

    def build(self, preset, targets):
        log = self.folder / "build" / f"{preset}.log"
        with log.open("w") as out:
            return subprocess.run(["ninja", "-C", f"build/{preset}", *targets], cwd=self.folder, stdout=out, stderr=out).returncode == 0

    def first_failure(self, preset, selection):
        """The first failing test of the selection with its first failed case, or nothing."""
        launcher = ["setarch", os.uname().machine, "-R"]
        environment = {**os.environ, "TSAN_OPTIONS": "halt_on_error=1"}
        command = [*launcher, "ctest", "--test-dir", f"build/{preset}", *selection, "-j", str(os.cpu_count()), "--timeout", "600",
                   "--stop-on-failure", "--output-on-failure"]
        ran = subprocess.run(
            command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        text = ran.stdout.decode(errors="replace")
        if ran.returncode == 0:
            return ""
        program = re.search(r"Test +#\d+: (\S+) .*(?:Failed|Exception|Timeout|Not Run)", text)
        if program and "Not Run" in program[0]:
            return program[1] + NOT_RUN
        case = re.search(r"^\[  FAILED  \] (\S+)|^FAIL: (.*)|^FAILED (\S+)", text, re.MULTILINE)
        return (program[1] if program else "?") + (" " + next(filter(None, case.groups())) if case else "")


def exactly(names):
    """A regular expression for these tests alone."""
    return f"^({'|'.join(map(re.escape, names))})$"


def near_tests(room):
    """A regular expression for the names of a room's tests."""
    first = NEAR.get(room, NEAR.get(room.split("/")[0], room.split("/")[-1 if room.startswith("bindings") else 0]))
    return f"^({first})_"


def output(command, folder):
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL).stdout.decode()


def run(command, folder):
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"mutations: {' '.join(command)} failed:\n{done.stdout.decode()}")


if __name__ == "__main__":
    main()
