"""`scaletrain train --checkpoint`: a run that is killed anywhere and resumed ends like one without a kill; signals, damage, retention."""

import json
import os
import pathlib
import random
import re
import signal
import subprocess
import time
import unittest

from command_line import PROGRAM, ROOT, SANITIZED, TINY, CommandLineTest, log_lines, run, step_lines

TIMES = {"tokens_per_second", "milliseconds", "memory_bytes"}
STEPS = 100


def digits(log):
    return [{key: value for key, value in line.items() if key not in TIMES} for line in log]


def names(folder):
    return sorted(path.name for path in pathlib.Path(folder).glob("step-*"))


class CheckpointTrain(CommandLineTest):
    def setUp(self):
        super().setUp()
        self.saves = self.folder / "checkpoints"
        self.log = self.folder / "log.jsonl"
        self.options = ["--data", self.text, *TINY, "--dropout", "0.1", "--ema-decay", "0.9", "--log", self.log]

    def arguments(self, *more, steps=STEPS):
        return ["train", *self.options, "--steps", steps, "--checkpoint", self.saves, *more]

    def ends_well(self, *more, steps=STEPS):
        done = run(*self.arguments(*more, steps=steps))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def whole_run(self, *more, steps=STEPS):
        """The log of an undisturbed run without checkpoints."""
        self.train(*self.options, "--steps", steps, *more)
        return log_lines(self.log)

    def expect_log(self, wanted):
        """Compares logs without evaluations: a run that was shorter at first evaluated after other steps."""
        self.assertEqual(digits(step_lines(self.log)), digits(line for line in wanted if "evaluation" not in line))

    def start(self, *more, steps=STEPS):
        process = subprocess.Popen([PROGRAM, *map(str, self.arguments(*more, steps=steps))], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        return process

    def wait_for_line(self, process, pattern):
        for line in process.stdout:
            if re.search(pattern, line):
                return
        self.fail(f"no line {pattern}")

    def test_killed_anywhere_and_resumed_it_ends_as_without_a_kill(self):
        wanted = self.whole_run()
        seed = random.randrange(10**6)
        chance = random.Random(seed)
        for kill in range(8):
            process = self.start("--every", 10, "--keep", 3, "--resume")
            if kill > 0:  # the first kills come before anything was saved
                self.wait_for_line(process, "^resumed|^step ")
            time.sleep(chance.uniform(0, 0.2))
            process.kill()
            process.communicate()
        output = self.ends_well("--every", 10, "--keep", 3, "--resume")
        self.assertEqual(digits(log_lines(self.log)), digits(wanted), f"seed {seed}")
        self.assertIn(wanted[-1]["state"], output)
        kept = names(self.saves)
        self.assertEqual(kept[-3:], ["step-00000080", "step-00000090", "step-00000100"])
        self.assertLessEqual(len(kept), 4, "the last kill may come between a save and the following removal")

    def test_the_first_signal_saves_and_stops_and_sigusr1_saves_and_goes_on(self):
        steps = 5000 if SANITIZED else 10000  # enough for the run to last until the signals come
        wanted = self.whole_run(steps=steps)
        process = self.start("--keep", 0, steps=steps)
        self.wait_for_line(process, r"^step 20/")
        process.send_signal(signal.SIGUSR1)
        while not names(self.saves):
            self.assertRegex(process.stdout.readline(), "^step ")  # keep reading, or the program would block
        process.send_signal(signal.SIGTERM)
        rest, errors = process.communicate(timeout=60)
        self.assertEqual((process.returncode, errors), (128 + signal.SIGTERM, ""))
        saved = [name for name in names(self.saves) if name.count(".") == 0]
        self.assertIn(f"saved            {self.saves}/{saved[-1]}; continue with --resume\n", rest)
        self.assertGreaterEqual(len(saved), 1)
        output = self.ends_well("--keep", 0, "--resume", steps=steps)
        self.assertIn(f"resumed          {self.saves}/{saved[-1]}\n", output)
        self.expect_log(wanted)

    def test_a_signal_to_save_that_comes_before_the_first_step_ends_no_run(self):
        recipe = self.folder / "recipe"
        os.mkfifo(recipe)
        process = self.start("--recipe", recipe, steps=5)
        with open(recipe, "w", encoding="utf-8") as file:  # opens when the program reads it
            process.send_signal(signal.SIGUSR1)
            file.write("{}")
        _, errors = process.communicate(timeout=60)
        self.assertEqual((process.returncode, errors), (0, ""))
        self.assertEqual(names(self.saves), ["step-00000001", "step-00000005"])

    def test_a_damaged_newest_one_is_passed_over_and_none_whole_ends_with_3(self):
        wanted = self.whole_run(steps=30)
        self.ends_well("--every", 10, steps=29)
        self.assertEqual(names(self.saves), ["step-00000010", "step-00000020", "step-00000029"])

        def damage(name):
            with open(self.saves / name / "optimizer.safetensors", "r+b") as file:
                file.seek(-3, 2)
                byte = file.read(1)[0]
                file.seek(-3, 2)
                file.write(bytes([byte ^ 64]))

        damage("step-00000029")
        output = self.ends_well("--every", 10, "--resume", steps=30)
        self.assertRegex(output, r"(?m)^skipped +step-00000029: .*optimizer\.safetensors.*$")
        self.assertRegex(output, r"(?m)^resumed +.*/step-00000020$")
        self.expect_log(wanted)
        for name in names(self.saves):
            if name != "step-00000029":
                damage(name)
        done = run(*self.arguments("--resume", steps=40))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stderr, r"\Ascaletrain: .*none.*optimizer\.safetensors.*\n\Z")

    def test_a_finished_run_says_its_last_line_again(self):
        self.ends_well("--every", 10, steps=20)
        before = self.log.read_text()
        output = self.ends_well("--every", 10, "--resume", steps=20)
        self.assertEqual(self.log.read_text(), before)
        self.assertEqual(output.splitlines()[-1], before.splitlines()[-1])
        self.assertRegex(output, r"(?m)^finished +already at step 20 of 20; nothing to do")
        self.assertEqual(names(self.saves), ["step-00000010", "step-00000020"])

    def test_more_steps_go_on_behind_a_finished_run(self):
        wanted = self.whole_run("--lr-steps", 40, steps=40)
        self.ends_well("--lr-steps", 40, steps=20)
        self.ends_well("--lr-steps", 40, "--resume", steps=40)
        self.expect_log(wanted)

    def test_seed_and_batch_are_the_checkpoints(self):
        wanted = self.whole_run("--accumulate", 2, "--seed", 3, steps=20)
        self.ends_well("--accumulate", 2, "--seed", 3, "--lr-steps", 20, steps=10)
        output = self.ends_well("--lr-steps", 20, "--resume", steps=20)
        self.assertNotIn("changed ", output)
        self.assertRegex(output, r"(?m)^kept +seed: 3 in the checkpoint, 0 here\nkept +accumulate: 2 in the checkpoint, 1 here$")
        self.expect_log(wanted)

    def test_what_differs_is_told_or_refused(self):
        self.ends_well(steps=10)
        self.assertRegex(self.ends_well("--lr", "0.0005", "--resume", steps=12),
                         r"(?m)^changed +lr: 0\.0005 here, 0\.001 in the checkpoint$")
        recipe = self.folder / "recipe.json"
        recipe.write_text('{"seed": 1}')
        for arguments, said in [(["--batch", 4], "batch is 4, but the run in .* has 2; leave --batch out"), (["--recipe", recipe], "seed is 1, .* has 0"),
                                (["--width", 32], "has width 16; leave --width out"), (["--global-batch", 8], "global-batch is 8, .* has 2"),
                                (["--validation", "0.5"], "rows of"), (["--optimizer", "lion"], "moment2")]:
            done = run(*self.arguments("--resume", *arguments, steps=14))
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, said)
            self.assertEqual(done.stderr.count("\n"), 1)

    def test_a_checkpoint_names_a_llama_with_its_sizes(self):
        llama = ["--model", "llama", "--kv-heads", 1, "--ffn", 24, "--rope-base", 500, "--rms-norm-epsilon", "1e-4"]
        wanted = self.whole_run(*llama, steps=20)
        self.assertRegex(self.output, r"(?m)^model +llama: 1 layers, width 16, 2 heads, groups 1, ffn 24, ")
        losses = [line["loss"] for line in wanted if "evaluation" not in line and "loss" in line]
        self.assertLess(losses[-1], losses[0])
        self.ends_well(*llama, "--lr-steps", 20, steps=9)
        self.ends_well("--resume", steps=20)
        self.expect_log(wanted)
        for option, value, said in (("--model", "gpt", "--model is gpt, but the model of"), ("--activation", "relu", "an option of the model gpt"),
                                    ("--kv-heads", 2, "has groups 1")):  # fmt: skip
            done = run(*self.arguments("--resume", option, value))
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)

    def test_retention_keeps_multiples_and_the_best(self):
        self.ends_well("--every", 2, "--keep", 1, "--keep-every", 8, "--keep-best", 1, steps=20)
        metadata = {name: json.loads((self.saves / name / "manifest.json").read_text())["metadata"] for name in names(self.saves)}
        self.assertLessEqual({"step-00000008", "step-00000016", "step-00000020"}, set(metadata))
        self.assertLessEqual(len(metadata), 4)
        self.assertLess(min(float(each.get("validation_loss", "inf")) for each in metadata.values()), 100)

    def test_early_stopping_goes_on_as_if_nobody_had_interrupted_it(self):
        stopping = ["--early-stopping-patience", 2, "--early-stopping-min-delta", 5, "--lr-steps", STEPS]
        wanted = self.whole_run(*stopping)
        ended = len(wanted) - 1
        self.assertLess(ended, STEPS)
        process = self.start("--every", 1, *stopping)
        self.wait_for_line(process, r"^step 12/")
        process.kill()
        process.communicate()
        self.ends_well("--every", 1, "--resume", *stopping)
        self.expect_log(wanted)
        before = self.log.read_text()
        self.ends_well("--every", 1, "--resume", *stopping)
        self.assertEqual(self.log.read_text(), before, "the run stays ended")

    def test_minutes_are_another_clock_than_steps(self):
        self.ends_well("--minutes", "1e-7", "--keep", 0, steps=4)  # shorter than any step
        self.assertEqual(names(self.saves), [f"step-0000000{step}" for step in (1, 2, 3, 4)])
        self.ends_well("--minutes", 60, "--keep", 0, "--resume", steps=6)
        self.assertEqual(names(self.saves)[4:], ["step-00000006"])

    def test_a_folder_that_is_used_already_or_cannot_be_is_refused(self):
        self.ends_well(steps=5)
        data = self.folder / "data"
        data.mkdir()
        (data / "a.txt").write_text(self.text.read_text())
        plain = ["train", "--data", self.text, *TINY, "--steps", 6]
        for arguments, said in [(self.arguments(steps=6), "--resume"),
                                ([*plain, "--checkpoint", self.text], "is not a folder"),
                                ([*plain, "--every", 3], "--checkpoint"),
                                ([*plain, "--resume"], "--checkpoint"),
                                (["train", "--data", data, *TINY, "--steps", 6, "--checkpoint", data / "saves"], "data folder"),
                                (["train", "--data", data, *TINY, "--steps", 6, "--checkpoint", data], "data folder"),
                                (self.arguments("--resume", "--every", 0), "--every is 0"),
                                (self.arguments("--resume", "--minutes", 0), "--minutes is 0"),
                                (self.arguments("--resume", "--keep", -1), "--keep is -1")]:
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertIn(said, done.stderr)

    def test_a_run_that_others_are_at_is_refused(self):
        process = self.start("--every", 10, steps=100000)
        self.wait_for_line(process, r"^step 12/")
        done = run(*self.arguments("--resume"))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(str(process.pid), done.stderr)
        weights = ROOT / "tests/conformance/fixtures/gpt2/model.safetensors"
        imported = run("checkpoint", "import", weights, self.saves)
        self.assertEqual((imported.returncode, imported.stderr), (2, done.stderr))
        process.kill()
        process.communicate()

    def test_absent_and_empty_folders_start_afresh(self):
        wanted = self.whole_run(steps=6)
        for folder in ("absent", "empty"):
            if folder == "empty":
                for path in sorted(self.saves.rglob("*"), reverse=True):
                    path.rmdir() if path.is_dir() else path.unlink()
            self.assertNotIn("resumed", self.ends_well("--resume", steps=6))
            self.expect_log(wanted)

    def test_the_report_shows_the_steps_before_too_where_the_log_has_them(self):
        report = self.folder / "report.html"

        def page(steps):
            self.ends_well("--resume", "--report", report, steps=steps)
            return report.read_text()

        def axes(first, last):
            return rf'data-axes="\S+ \S+ \S+ \S+ {first} {last} '

        self.ends_well(steps=5)
        whole = page(10)
        self.assertRegex(whole, axes(1, 10))
        self.assertIn("resumed after step 5", whole)
        self.assertNotIn("from step", whole)
        self.assertRegex(page(10), axes(1, 10), "also for a run that was already finished")
        self.log.unlink()
        rest = page(15)
        self.assertRegex(rest, axes(11, 15))
        self.assertIn("from step 11 on", rest)


if __name__ == "__main__":
    unittest.main()
