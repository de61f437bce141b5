"""`scaletrain launch`: processes as ranks, their output, how they end, and what is left of them."""

import collections
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

from command_line import PROGRAM, TINY, CommandLineTest, log_lines, run

ALL_VARIABLES = "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR SCALETRAIN_RESTART SCALETRAIN_RANKS_FROM"

# Lines of 1 to 3000 bytes, written in chunks that end anywhere.
MANY_LINES = """
import os
rank = int(os.environ["RANK"])
text = "".join(f"{i} " + chr(ord("a") + rank) * (i * 37 % 3000) + "\\n" for i in range(1000)).encode()
for at in range(0, len(text), 777): os.write(1 + at // 777 // 100 % 2 * SPREAD, text[at : at + 777])
"""


def launch(*arguments):
    return run("launch", *arguments)


def shell(ranks, script, *options):
    return launch("-n", ranks, *options, "--", "sh", "-c", script)


def is_running(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def comes_true(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


class Launch(CommandLineTest):
    def started(self, ranks, script, *options, **streams):
        """A launch that runs in the background and has printed one line per rank."""
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **streams}
        process = subprocess.Popen([PROGRAM, "launch", "-n", str(ranks), *options, "--", "sh", "-c", script], **streams)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process, sorted(process.stdout.readline() for _ in range(ranks))

    def failed(self, done, status, *words):
        self.assertEqual(done.returncode, status, (done.stdout, done.stderr))
        last = done.stderr.splitlines()[-1]
        self.assertTrue(last.startswith("scaletrain: "), done.stderr)
        for word in words:
            self.assertIn(word, last)

    # --- what a rank gets

    def test_each_rank_knows_who_it_is(self):
        values = " ".join("$" + name for name in ALL_VARIABLES.split())
        done = shell(3, f"echo {values}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        self.assertEqual(sorted(done.stdout.splitlines()), [f"[rank {r}] {r} 3 {r} 3 127.0.0.1 0 torchrun" for r in range(3)])

    def test_a_reader_that_pauses_loses_nothing(self):
        done = subprocess.run(["sh", "-c", f"{PROGRAM} launch -n 1 --grace 0 -- seq 30000 | (sleep 2.5; wc -l)"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stdout.strip(), "30000", done.stderr)

    def test_a_second_signal_starts_the_grace(self):
        launched, _ = self.started(2, "trap '' TERM; echo up; sleep 60 & wait; sleep 60", "--grace", "0.1")
        launched.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        self.assertIsNone(launched.poll())
        launched.send_signal(signal.SIGTERM)
        launched.communicate(timeout=20)
        self.assertEqual(launched.returncode, 143)

    def test_ranks_meet_at_one_port(self):
        ports = {line.split()[-1] for line in shell(3, "echo $MASTER_PORT").stdout.splitlines()}
        self.assertEqual(len(ports), 1)
        self.assertTrue(1024 <= int(ports.pop()) < 32768, "a connection may take a port above before rank 0 listens")
        self.assertEqual(shell(1, "echo $MASTER_PORT", "--port", 23456).stdout, "[rank 0] 23456\n")

    def test_what_follows_the_program_is_its_own(self):
        self.assertEqual(launch("-n", 1, "echo", "-n", "--restarts", "3", "--", "--help").stdout, "[rank 0] --restarts 3 -- --help\n")
        self.assertEqual(launch("-n1", "--grace=1", "--", "echo", "--", "a  b", "").stdout, "[rank 0] -- a  b \n")

    def test_rank_0_has_the_input(self):
        done = subprocess.run([PROGRAM, "launch", "-n", "2", "cat"], input="a\nb\n", capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, "[rank 0] a\n[rank 0] b\n"))

    # --- output

    def test_streams_stay_apart_and_the_last_line_gets_an_end(self):
        done = shell(2, "echo out; echo err >&2; printf rest; printf more >&2")
        self.assertEqual(sorted(done.stdout.splitlines()), sorted(f"[rank {r}] {word}" for r in (0, 1) for word in ("out", "rest")))
        self.assertEqual(sorted(done.stderr.splitlines()), sorted(f"[rank {r}] {word}" for r in (0, 1) for word in ("err", "more")))
        self.assertTrue(done.stdout.endswith("\n") and done.stderr.endswith("\n"))

    def test_lines_of_many_ranks_are_whole_and_in_order(self):
        done = launch("-n", 8, sys.executable, "-c", MANY_LINES.replace("SPREAD", "0"))
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = collections.defaultdict(list)
        for line in done.stdout.splitlines():
            rank, text = re.fullmatch(r"\[rank (\d)\] (.*)", line).groups()
            lines[int(rank)].append(text)
        for rank in range(8):
            self.assertEqual(lines[rank], [f"{i} " + chr(ord("a") + rank) * (i * 37 % 3000) for i in range(1000)])

    def test_lines_are_whole_where_both_streams_are_one(self):
        # If a rank changes the stream in the middle of lines, each stream's own lines are still whole.
        command = [PROGRAM, "launch", "-n", "4", sys.executable, "-c", MANY_LINES.replace("SPREAD", "1")]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        self.assertEqual(done.returncode, 0)
        letters = collections.Counter()
        for line in done.stdout.splitlines():
            rank, text = re.fullmatch(r"\[rank (\d)\] ([a-d0-9 ]*)", line).groups()
            self.assertLessEqual({c for c in text if c.isalpha()}, {chr(ord("a") + int(rank))})
            letters.update(c for c in text if c.isalpha())
        self.assertEqual(letters, {letter: sum(i * 37 % 3000 for i in range(1000)) for letter in "abcd"})

    def test_bytes_are_left_as_they_are(self):
        rank = "import os; os.write(1, bytes(range(256)) + b'\\n' + b'\\r\\n\\n')"
        done = subprocess.run([PROGRAM, "launch", "-n", "1", sys.executable, "-c", rank], capture_output=True, timeout=60)
        lines = bytes(range(10)), bytes(range(11, 13)), bytes(range(14, 256)), b"\r", b""
        self.assertEqual(done.stdout, b"".join(b"[rank 0] " + line + b"\n" for line in lines))

    def test_a_progress_bar_is_seen_as_it_moves(self):
        process, lines = self.started(1, "printf '\\r 1%%\\r 2%%\\r'; exec sleep 20")
        self.assertEqual(lines, ["[rank 0]  1%\n"])
        process.terminate()
        self.assertEqual(process.communicate(timeout=30)[0], "[rank 0]  2%\n")

    def test_an_endless_line_is_broken(self):
        done = launch("-n", 1, sys.executable, "-c", "import os; os.write(1, b'x' * (5 << 19)); os.write(1, b'y' * (1 << 19) + b'\\nz')")
        lines = done.stdout.splitlines()
        self.assertEqual([len(line) - len("[rank 0] ") for line in lines], [1 << 20, 1 << 20, 1 << 20, 1])
        self.assertEqual("".join(line.removeprefix("[rank 0] ") for line in lines), "x" * (5 << 19) + "y" * (1 << 19) + "z")

    def test_a_reader_that_does_not_read_holds_the_ranks_and_fills_no_memory(self):
        process, _ = self.started(2, "echo; exec yes")
        status, resident = pathlib.Path(f"/proc/{process.pid}/status"), []
        for _ in range(2):
            time.sleep(0.3)
            resident.append(int(re.search(r"VmRSS:\s*(\d+) kB", status.read_text())[1]))
        self.assertLess(resident[1] - resident[0], 16 << 10)  # although the ranks would write gigabytes
        process.terminate()
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 143)

    def test_a_reader_that_is_gone_ends_the_ranks(self):
        process, _ = self.started(2, "echo; exec yes")
        process.stdout.close()
        process.wait(timeout=30)
        self.assertIn("cannot write stdout: Broken pipe", process.stderr.read())
        self.assertEqual(process.returncode, 3)

    # --- ends

    def test_the_first_failure_is_named(self):
        self.failed(shell(3, "[ $RANK = 1 ] && exit 7; exec sleep 60"), 3, "rank 1 ended with status 7")
        self.failed(shell(3, "[ $RANK = 2 ] && exit 2; exec sleep 60"), 2, "rank 2 ended with status 2")
        self.failed(shell(3, "[ $RANK = 0 ] && kill -KILL $$; exec sleep 60"), 3, "rank 0 was ended by SIGKILL")
        self.failed(shell(2, "[ $RANK = 1 ] && kill -TERM $$; exec sleep 60"), 3, "rank 1 was ended by SIGTERM")

    def test_who_fails_because_of_another_is_not_the_reason(self):
        for act, status, reason in (("exit 2", 2, "rank 1 ended with status 2"), ("kill -SEGV $$", 3, "rank 1 was ended by SIGSEGV"),
                                    ("exit 9", 3, "rank 0 ended with status 3")):
            ready = self.folder / f"ready-{status}-{act.split()[0]}-{act[-1]}"
            first = f"until [ -e '{ready}' ]; do sleep 0.01; done; exit 3"
            second = f"trap '{act}' TERM; : >'{ready}'; while :; do sleep 0.01; done"
            self.failed(shell(2, f"[ $RANK = 0 ] && {{ {first}; }}; {second}"), status, reason)

    def test_the_others_may_end_in_order(self):
        script = "trap 'echo in order; exit 0' TERM; [ $RANK = 0 ] && { sleep 0.2; exit 5; }; while :; do sleep 0.01; done"
        done = shell(3, script)
        self.failed(done, 3, "rank 0 ended with status 5")
        self.assertEqual(sorted(done.stdout.splitlines()), ["[rank 1] in order", "[rank 2] in order"])

    def test_who_does_not_end_is_killed_after_the_grace(self):
        began = time.monotonic()
        self.failed(shell(3, "trap '' TERM; [ $RANK = 0 ] && { sleep 0.2; exit 5; }; exec sleep 60", "--grace", 0.3), 3, "rank 0")
        self.assertTrue(0.4 < time.monotonic() - began < 20)

    def test_what_a_rank_leaves_running_ends_too(self):
        done = shell(2, "sleep 300 & echo $!", "--grace", 0.2)
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in done.stdout.splitlines():
            self.assertFalse(is_running(line.split()[-1]))
        silent = shell(1, "sleep 300 >/dev/null 2>&1 & echo $!", "--grace", 0.2)
        self.assertFalse(is_running(silent.stdout.split()[-1]))

    def test_nothing_outlives_a_launcher_that_is_killed(self):
        process, lines = self.started(3, "trap '' TERM HUP; sleep 300 & echo $$ $!; wait")
        processes = [number for line in lines for number in line.split()[2:]]
        self.assertEqual(len(processes), 6)
        self.assertTrue(all(is_running(number) for number in processes))
        process.kill()
        self.assertTrue(comes_true(lambda: not any(is_running(number) for number in processes)))

    # --- signals

    def test_signals_reach_all_ranks_and_what_they_have_started(self):
        script = "trap 'kill $!; echo got it; exit 0' NAME; sh -c 'trap \"echo child; exit\" NAME; echo; while :; do sleep 0.01; done' & wait"
        for name, status in (("INT", 130), ("TERM", 143), ("HUP", 129)):
            process, _ = self.started(2, script.replace("NAME", name))
            process.send_signal(getattr(signal, "SIG" + name))
            out, err = process.communicate(timeout=30)
            self.assertEqual(process.returncode, status, (name, out, err))
            self.assertIn(f"ended by SIG{name}", err)
            for rank in (0, 1):
                self.assertIn(f"[rank {rank}] got it", out)

    def test_a_rank_that_ends_as_it_was_asked_has_not_failed(self):
        process, _ = self.started(3, "echo; exec sleep 60", "--restarts", "3")
        process.terminate()
        self.assertEqual(process.communicate(timeout=30)[1], "scaletrain: launch: ended by SIGTERM\n")
        self.assertEqual(process.returncode, 143)

    def test_one_that_fails_while_it_should_end_is_told_and_hurries_the_others(self):
        script = "trap '[ $RANK = 1 ] && exit 4' TERM; echo; while :; do sleep 0.01; done"
        process, _ = self.started(3, script, "--grace", "0.3", "--restarts", "3")
        process.terminate()
        err = process.communicate(timeout=30)[1]  # shells also report their children's ends
        self.assertEqual(err.splitlines()[-1], "scaletrain: launch: ended by SIGTERM; rank 1 ended with status 4")
        self.assertEqual(process.returncode, 143)

    def test_usr1_ends_nothing(self):
        process, _ = self.started(2, "trap 'echo saved; exit 0' USR1; echo; while :; do sleep 0.01; done")
        process.send_signal(signal.SIGUSR1)
        out, _ = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(sorted(out.splitlines()), ["[rank 0] saved", "[rank 1] saved"])

    def test_usr1_spares_a_shell_that_does_not_know_it(self):
        child = 'trap "echo saved; exit 0" USR1; echo; while :; do sleep 0.01; done'
        process, _ = self.started(2, f"sh -c '{child}'; echo after")
        process.send_signal(signal.SIGUSR1)
        out, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(sorted(out.splitlines()), [f"[rank {rank}] {word}" for rank in (0, 1) for word in ("after", "saved")])

    def test_a_signal_that_was_ignored_stays_so(self):
        process, _ = self.started(
            1, "trap 'exit 0' TERM; echo; while :; do sleep 0.01; done", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
        )
        process.send_signal(signal.SIGHUP)
        time.sleep(0.1)
        self.assertIsNone(process.poll())
        process.terminate()
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 143)

    # --- restarts

    def test_all_are_started_again_until_it_works(self):
        done = shell(2, "echo $SCALETRAIN_RESTART; [ $RANK$SCALETRAIN_RESTART = 10 ] && kill -9 $$; [ $SCALETRAIN_RESTART = 1 ] && exit 9; "
                     "exit 0", "--restarts", 3)
        self.assertEqual(done.returncode, 0, done.stderr)
        told = done.stderr.splitlines()
        self.assertEqual(told[0], "scaletrain: launch: rank 1 was ended by SIGKILL; restart 1 of 3, with 2 ranks")
        self.assertRegex(told[1], r"^scaletrain: launch: rank [01] ended with status 9; restart 2 of 3, with 2 ranks$")
        self.assertEqual(len(told), 2)
        self.assertLessEqual({"[rank 0] 2", "[rank 1] 2"}, set(done.stdout.splitlines()))

    def test_restarts_are_counted(self):
        done = shell(1, "echo $SCALETRAIN_RESTART; exit 9", "--restarts", 2)
        self.failed(done, 3, "rank 0 ended with status 9", "after 2 restarts")
        self.assertEqual(done.stdout.splitlines(), ["[rank 0] 0", "[rank 0] 1", "[rank 0] 2"])

    def test_a_wrong_request_is_not_made_again(self):
        done = shell(1, "echo; exit 2", "--restarts", 2)
        self.failed(done, 2, "rank 0 ended with status 2")
        self.assertEqual(done.stdout, "[rank 0] \n")

    def test_restarts_can_have_fewer_ranks(self):
        done = shell(4, "[ $RANK = 0 ] && echo $WORLD_SIZE; [ $RANK = 0 ] && exit 3; exec sleep 60", "--restarts", 4, "--min-ranks", 2)
        self.assertEqual(done.stdout.splitlines(), [f"[rank 0] {size}" for size in (4, 3, 2, 2, 2)])

    def test_training_that_was_killed_goes_on_to_the_same_state(self):
        common = ["--data", self.text, "--steps", 200, *TINY]
        undisturbed = self.train(*common)[-1]["state"]
        checkpoints, log = self.folder / "run", self.folder / "launched.jsonl"
        words = [PROGRAM, "train", *common, "--checkpoint", checkpoints, "--every", 5, "--resume", "--log", log]
        script = self.file(
            "rank.sh",
            f""""$@" & training=$!
            [ $SCALETRAIN_RESTART = 0 ] && {{ until ls {checkpoints}/step-????????/manifest.json >/dev/null 2>&1; do sleep 0.01; done; kill -9 $training; }}
            wait $training
            """,
        )
        done = launch("-n", 1, "--restarts", 1, "sh", script, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("rank 0 ended with status 137; restart 1 of 1", done.stderr)
        self.assertEqual(log_lines(log)[-1]["state"], undisturbed)

    def test_a_rank_that_is_killed_is_named_in_a_short_line(self):
        words = [PROGRAM, "train", "--data", self.text, "--steps", 10**6, *TINY, "--checkpoint", self.folder / "run", "--every", 1]
        script = self.file("rank.sh", f""""$@" & training=$!
            [ $RANK = 1 ] && {{ until ls {self.folder}/run/step-????????/manifest.json >/dev/null 2>&1; do sleep 0.01; done; kill -9 $training; }}
            wait $training
            """)  # fmt: skip
        done = launch("-n", 2, "sh", script, *words)
        self.assertEqual(done.returncode, 3, done.stderr)
        line = next(line for line in done.stderr.splitlines() if line.startswith("[rank 0] scaletrain: "))
        self.assertRegex(line, r"rank 1 \(.*\): its process has ended; its own output or exit status says why$")
        self.assertLess(len(line), 250)

    # --- transports

    def test_ranks_take_the_transport_that_is_named(self):
        words = [PROGRAM, "train", "--data", self.text, "--steps", 2, *TINY, "--transport"]
        self.assertEqual(launch("-n", 2, "--", *words, "local").returncode, 0)
        other = launch("-n", 2, "--", *words, "nosuch")
        self.assertEqual(other.returncode, 2, other.stderr)
        self.assertIn("transport nosuch", other.stderr)
        self.assertIn("local, gloo and mpi", other.stderr)
        alone = run(*words[1:], "gloo")
        self.assertEqual((alone.returncode, alone.stdout), (2, ""))
        self.assertIn("--transport gloo connects ranks that are processes", alone.stderr)
        unknown = run(*words[1:], "nosuch")
        self.assertEqual((unknown.returncode, unknown.stdout), (2, ""))
        self.assertIn("--transport nosuch; it must be local, gloo or mpi", unknown.stderr)

    # --- requests

    def test_wrong_requests(self):
        for words, expected in (
            ([], "-n is missing"),
            (["-n", 2], "name a program"),
            (["-n", 2, "--"], "name a program"),
            (["-n", 0, "true"], "-n is 0; give 1 to 1024"),
            (["-n", 1025, "true"], "1 to 1024"),
            (["-n", "two", "true"], '-n is "two"'),
            (["-n", 2, "--restarts", -1, "true"], "--restarts is -1"),
            (["-n", 2, "--restarts", 1, "--min-ranks", 3, "true"], "--min-ranks is 3; give 1 to 2"),
            (["-n", 2, "--min-ranks", 1, "true"], "--restarts"),
            (["-n", 2, "--grace", "long", "true"], '--grace is "long"'),
            (["-n", 2, "--grace", -1, "true"], "--grace is -1"),
            (["-n", 2, "--port", 65536, "true"], "--port is 65536"),
            (["-n", 2, "--restart", 3, "true"], "did you mean --restarts?"),
            (["-n", 2, "no-such-program", "x"], "cannot start no-such-program: No such file or directory"),
            (["-n", 2, self.folder], "Permission denied"),
            (["-n", 2, ""], "name a program"),
        ):
            done = launch(*words)
            self.failed(done, 2, expected)
            self.assertEqual((len(done.stderr.splitlines()), done.stdout), (1, ""), done.stderr)

    def test_works_without_standard_streams(self):
        mark = self.folder / "mark"
        done = subprocess.run(
            ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", PROGRAM, "launch", "-n", "2", "sh", "-c", f"echo; echo >&2; : >{mark}$RANK"], timeout=60
        )
        self.assertEqual(done.returncode, 0)
        self.assertTrue(all(os.path.exists(f"{mark}{rank}") for rank in (0, 1)))


if __name__ == "__main__":
    unittest.main()
