"""Guarantees of `scaletrain train`: equal runs, the log, precedence of options, a clean end on Ctrl-C, the progress bar."""

import json
import os
import pty
import re
import signal
import subprocess
import time
import unittest
import unittest.mock

from command_line import PROGRAM, ROOT, SANITIZED, TINY, CommandLineTest, log_lines, run, step_lines

KEYS = ["step", "loss", "lr", "grad_norm", "loss_scale", "skipped", "tokens", "tokens_per_second", "milliseconds", "memory_bytes"]
TIMES = {"tokens_per_second", "milliseconds", "exchange_milliseconds", "exchange_hidden", "straggler"}


SHOW = "--model gpt --layers 4 --width 128 --heads 4 --context 64 --batch 12 --seed 1".split()


def without_times(line):
    return {key: value for key, value in line.items() if key not in TIMES}


def digits(log):
    """The log's lines without memory, since each further thread has its own workspace."""
    return [{key: value for key, value in without_times(line).items() if key != "memory_bytes"} for line in log]


class Train(CommandLineTest):
    def tiny(self, *arguments, steps=6):
        return self.train("--data", self.text, *TINY, "--steps", steps, *arguments)

    def test_batch_auto_takes_what_fits_and_keeps_the_global_batch(self):
        chosen = self.tiny("--batch", "auto", "--global-batch", 4)
        self.assertRegex(self.output, r"(?m)^steps +6 of 4 rows, in 1 micro-batches$")
        self.assertEqual(chosen[-1], self.tiny("--batch", 4)[-1])

    def test_runs_are_equal_to_the_bit_whatever_the_threads(self):
        readme = self.file("README.md", (ROOT / "README.md").read_bytes())  # a copy, which cannot change between the runs
        steps, learned = (200, 1) if os.environ.get("SCALETRAIN_LONG_TESTS") == "1" else (4, 0.1)
        first, second = (self.train(*SHOW, "--steps", steps, "--data", readme, "--threads", threads) for threads in (1, 2))
        self.assertEqual(len(first), steps + 1)
        self.assertEqual(digits(first), digits(second))
        self.assertLess(first[steps - 1]["loss"], first[0]["loss"] - learned, "it learns")

    def test_tune_keeps_what_it_measured_and_says_that_a_cache_is_damaged(self):
        cache = self.folder / "tuning.txt"
        with unittest.mock.patch.dict(os.environ, SCALETRAIN_TUNING_CACHE=str(cache)):
            self.tiny("--tune", "--explain")
            self.assertRegex(self.output, r"(?m)^  tune +[0-9.]+ ms")
            self.assertTrue(cache.read_text().startswith("scaletrain-tuning 2\n"))
            cache.write_text("scaletrain-tuning 2\nhalf a li")
            done = run("train", "--data", self.text, *TINY, "--steps", 1, "--tune")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stderr, rf"\Ascaletrain: tuning: the cache {cache} is not used: .*\n\Z")

    def test_a_run_ends_early_when_its_validation_loss_stands_still(self):
        # A rate of 0 keeps the weights: the first evaluation is the best, and no later one improves on it.
        still = ("--lr", 0, "--weight-decay", 0)
        steps = 400
        whole = self.tiny(*still, steps=steps)
        self.assertEqual(len(whole), steps + 1)
        self.assertNotIn("ended early", self.output)
        report = self.folder / "report.html"
        log = self.tiny(*still, "--early-stopping-patience", 3, "--report", report, steps=steps)
        # Ten evaluations after the one before the first step, equally spaced.
        self.assertEqual(len(log) - 1, 3 * steps // 10)
        why = f"ended early after step {3 * steps // 10}: 3 evaluations in a row did not improve on the validation loss"
        self.assertIn(why, self.output)
        self.assertIn(why, report.read_text())
        self.assertEqual(log[-1]["validation_loss"], whole[-1]["validation_loss"], "of the same weights")
        self.assertNotIn("cannot happen", self.output)
        self.tiny(*still, "--early-stopping-patience", 10, steps=steps)
        self.assertIn("cannot happen: this run evaluates 11 times", self.output)
        self.assertNotIn("ended early", self.output)

    def test_early_stopping_leaves_a_run_that_improves_alone_and_measures_by_its_delta(self):
        plain = self.tiny("--lr", 3e-3, steps=400)
        self.assertEqual(digits(self.tiny("--lr", 3e-3, "--early-stopping-patience", 10, steps=400)), digits(plain))
        # The loss starts near ln 256 nats and cannot fall by 100.
        log = self.tiny("--lr", 3e-3, "--early-stopping-patience", 1, "--early-stopping-min-delta", 100, steps=400)
        self.assertEqual(digits(log[:-1]), digits(plain[:40]))

    def test_find_nan_ends_a_run_that_blew_up_with_the_op_and_its_place(self):
        # Weights exceed fp32 after the first update: a product or norm of the second step shows it first.
        blow = ("--lr", 1e38, "--warmup", 0, "--clip", 0, "--optimizer", "sgd", "--steps", 4)
        done = run("train", "--data", self.text, *TINY, *blow, "--find-nan")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(
            done.stderr,
            r"step \d: the first value that is not finite was made by \w+ in \S+ \((for|back)ward, micro-batch 0\): (-?inf|NaN) at \[",
        )

    def test_ema_decay_adds_the_losses_of_the_average_and_changes_no_digit(self):
        plain = self.tiny("--lr", 3e-3, steps=40)
        self.assertNotIn("of the average", self.output)
        self.assertEqual(list(plain[-1]), ["state", "validation_loss"])
        log = self.tiny("--lr", 3e-3, "--ema-decay", 0.9, steps=40)
        self.assertEqual(digits(log[:-1]), digits(plain[:-1]))
        last = log[-1]
        self.assertEqual(list(last), ["state", "validation_loss", "ema_val_loss"])
        self.assertEqual(last["validation_loss"], plain[-1]["validation_loss"])
        # While the loss falls, an average of about the last ten steps lags behind.
        self.assertGreater(last["ema_val_loss"], last["validation_loss"])
        self.assertLess(last["ema_val_loss"], last["validation_loss"] + 1)
        value, average = last["validation_loss"], last["ema_val_loss"]
        self.assertRegex(self.output, rf"(?m)^step 40/40  validation loss {value:.4f}  of the average {average:.4f}$")
        self.assertRegex(self.output, rf"(?m)^of the average +{average:.4f} nats a token")
        without = self.tiny("--ema-decay", 0.9, "--validation", 0)[-1]
        self.assertEqual((without["validation_loss"], without["ema_val_loss"]), (None, None))

    def test_early_stopping_without_validation_is_refused(self):
        done = run("train", "--data", self.text, *TINY, "--steps", 2, "--validation", 0, "--early-stopping-patience", 2)
        self.assertEqual(done.returncode, 2)
        self.assertIn("early_stopping_patience", done.stderr)
        self.assertIn("--validation 0", done.stderr)

    def test_a_ds_config_of_deepspeeds_trains_as_it_is(self):
        config = (
            '{"train_batch_size": 256, "gradient_accumulation_steps": 16, "fp16": {"enabled": true}, "zero_optimization": '
            '{"stage": 3, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}}}'
        )
        recipe = self.file("ds_config.json", config)
        shape = "--layers 1 --width 16 --heads 2 --context 8 --threads 1 --steps 2".split()
        log = self.train("--data", self.text, *shape, "--recipe", recipe)
        self.assertEqual([line["tokens"] for line in log[:2]], [256 * 8, 2 * 256 * 8])
        self.assertEqual([line["loss_scale"] for line in log[:2]], [65536, 65536])
        self.assertLess(log[1]["loss"], log[0]["loss"])
        self.assertEqual(self.output.count("recipe  "), 1, "said once")
        self.assertRegex(self.output, r"(?m)^recipe +zero_optimization \(stage 3\) .* several ranks")
        self.train("--data", self.text, *shape, "--recipe", recipe, "--batch", 2)
        self.assertRegex(self.output, r"(?m)^steps +2 of 32 rows", "options beat the file")

    def test_parameters_are_offloaded_to_a_folder_that_is_left_empty(self):
        folder = self.folder / "offload"
        folder.mkdir()
        self.tiny("--offload", "parameters", "--offload-folder", folder)
        self.assertRegex(self.output, rf"(?m)^device .* planned, and \S+ [KM]iB in {folder}$")
        self.assertRegex(self.output, r"(?m)^memory .*, file \S+ [KM]iB")
        self.assertEqual(list(folder.iterdir()), [])

    def test_explain_prints_the_program_and_what_recompute_saves_and_costs(self):
        self.tiny("--recompute", "blocks", "--explain")
        for word in ("autodiff", "memory_plan", "matmul"):
            self.assertIn(word, self.output)
        self.assertRegex(self.output, r"(?m)^  block\.0 +\d+ +[0-9.]+ GFLOP +\d+ bytes")
        before, after = map(int, re.search(r"stash (\d+) bytes before, (\d+) after", self.output).groups())
        self.assertLess(after, before)
        self.assertRegex(self.output, rf"(?m)^  stash +{after} ")
        self.tiny("--explain")
        self.assertNotIn("GFLOP", self.output)

    def test_explain_without_steps_makes_none(self):
        done = run("train", "--data", self.text, *TINY, "--lr-schedule", "cosine", "--explain")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"(?m)^section update$")
        self.assertRegex(done.stdout, r"(?m)^steps +none; a step has .* rows; schedules are checked as for 1,000,000 steps$")
        self.assertNotRegex(done.stdout, r"(?m)^step \d|^state ")
        done = run("train", "--data", self.text, *TINY)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"--steps is missing.*--explain")

    def test_ranks_share_the_rows_of_a_step_and_evaluate_when_one_does(self):
        logs = []
        for ranks in (1, 2, 3):
            logs.append(self.tiny("--batch", 2, "--micro-batches", 4, "--ranks", ranks, "--validation", 0.2, steps=30))
            self.assertRegex(self.output, r"(?m)^steps +30 of 8 rows", ranks)
        one, *others = [[(line.get("step"), line.get("validation_loss"), line.get("state")) for line in log] for log in logs]
        for other in others:
            self.assertEqual(other, one)

    def test_gradient_noise_scale_is_logged_and_drawn(self):
        report = self.folder / "noise.html"
        log = self.tiny("--batch", 2, "--accumulate", 3, "--gradient-noise-scale", "--report", report)
        known = [line["gradient_noise_scale"] for line in log[:-1] if "gradient_noise_scale" in line]
        self.assertTrue(known and min(known) > 0, log)
        self.assertIn("Gradient noise scale", report.read_text())

    def test_bf16_ends_like_fp32(self):
        fp32, bf16 = (self.tiny("--precision", precision, "--lr", 3e-3, "--batch", 8, steps=100)[-1]["validation_loss"]
                      for precision in ("fp32", "bf16"))
        self.assertLess(fp32, 3.5, "it learned")
        self.assertLessEqual(bf16, 1.01 * fp32)

    @unittest.skipIf(SANITIZED, "six thousand steps; other tests run the same code")
    def test_8_bit_moments_end_like_those_of_32(self):
        # Two runs drift apart by some 0.3 %, whatever the first difference was; the cost of the coding shows in the mean of several runs.
        end = {"adamw": 0, "adamw-8bit": 0}
        shape = "--layers 2 --width 64 --heads 2 --context 16 --batch 8 --steps 500 --threads 1".split()  # 8 bits from 4,096 elements on
        for seed in range(1, 7):
            for optimizer in end:
                log = self.train("--data", ROOT / "LICENSE", *shape, "--seed", seed, "--optimizer", optimizer)
                end[optimizer] += sum(line["loss"] for line in log[450:500]) / 300
        self.assertNotEqual(end["adamw"], end["adamw-8bit"])
        self.assertLess(end["adamw"], 2.2, "it learned")
        self.assertLessEqual(abs(end["adamw-8bit"] - end["adamw"]), 0.005 * end["adamw"], end)

    def test_log_has_its_keys_in_order_and_ends_with_the_state(self):
        log = self.tiny()
        self.assertEqual([list(line) for line in log[:-1]], [KEYS] * 6)
        self.assertEqual([line["step"] for line in log[:-1]], [1, 2, 3, 4, 5, 6])
        self.assertEqual([line["tokens"] for line in log[:-1]], [16 * n for n in range(1, 7)])
        self.assertEqual(list(log[-1]), ["state", "validation_loss"])
        self.assertRegex(log[-1]["state"], "^[0-9a-f]{32}$")
        self.assertGreater(log[-1]["validation_loss"], 0)
        self.assertIn(log[-1]["state"], self.output)

    def test_every_evaluation_is_in_the_log(self):
        last = self.tiny("--validation", 0.02, "--ema-decay", 0.9, steps=100)[-1]
        made = [line["evaluation"] for line in log_lines(self.folder / "log.jsonl") if "evaluation" in line]
        shown = re.findall(r"(?m)^step (\d+)/100  validation loss (\S+)  of the average (\S+)$", self.output)
        self.assertEqual([(str(of["step"]), f"{of['validation_loss']:.4f}", f"{average['ema_val_loss']:.4f}") for of, average in zip(made[::2], made[1::2])],
                         shown)
        self.assertGreater(len(shown), 3)
        self.assertEqual((made[-2]["validation_loss"], made[-1]["ema_val_loss"]), (last["validation_loss"], last["ema_val_loss"]))

    def test_a_run_longer_than_its_schedule_says_so_once(self):
        self.tiny("--lr-schedule", "cosine", "--warmup", 0, "--lr-steps", 4, steps=8)
        self.assertEqual(len(re.findall(r"(?m)^schedule +lr_schedule cosine ended after lr_steps 4 .* from step 5 on", self.output)), 1, self.output)

    def rates(self, *arguments, steps=8):
        return [line["lr"] for line in self.tiny("--lr", 0.5, *arguments, steps=steps)[:-1]]

    def test_schedules_take_the_runs_steps_for_their_length(self):
        self.assertEqual(self.rates("--lr-schedule", "linear", "--warmup", 4), [0.125, 0.25, 0.375, 0.5, 0.5, 0.375, 0.25, 0.125])
        self.assertEqual(self.rates("--lr-schedule", "linear", "--warmup", 0, "--lr-min", 0.25, "--lr-steps", 4),
                         [0.5, 0.4375, 0.375, 0.3125, 0.25, 0.25, 0.25, 0.25])
        recipe = self.file("recipe.json", json.dumps({"lr_schedule": "wsd", "lr_decay_steps": 4, "warmup": 0, "lr_steps": 6}))
        self.assertEqual(self.rates("--recipe", recipe), [0.5, 0.5, 0.5, 0.375, 0.25, 0.125, 0, 0])

    def test_without_validation_its_loss_is_null(self):
        self.assertIsNone(self.tiny("--validation", 0)[-1]["validation_loss"])

    def test_an_option_given_twice_counts_the_last_time(self):
        self.assertEqual(len(self.tiny("--steps", 2, "--batch", 3, "--batch", 1)), 3)
        self.assertEqual(self.tiny("--batch", 3, "--batch", 1)[0]["tokens"], 8)

    def test_options_beat_the_recipe_file_which_beats_defaults(self):
        recipe = self.file("recipe.json", json.dumps({"lr": 0.25, "warmup": 1, "seed": 3}))
        self.assertEqual(self.tiny("--recipe", recipe)[0]["lr"], 0.25)
        self.assertEqual(self.tiny("--recipe", recipe, "--lr", 0.125)[0]["lr"], 0.125)
        self.assertEqual(self.tiny("--lr", 0.125, "--recipe", recipe)[0]["lr"], 0.125)
        self.assertEqual(self.tiny("--recipe", recipe)[-1]["state"], self.tiny("--lr", 0.25, "--warmup", 1, "--seed", 3)[-1]["state"])

    def test_output_has_a_line_a_step_and_the_bigram_table(self):
        self.tiny()
        for step in range(1, 7):
            self.assertRegex(self.output, rf"(?m)^step {step}/6  loss \d")
        self.assertRegex(self.output, r"validation loss +\d")
        self.assertRegex(self.output, r"bigram table +\d")
        self.assertNotIn("\x1b", self.output)

    def test_the_peak_of_memory_is_told_by_role(self):
        self.tiny("--validation", 0)
        line = next(line for line in self.output.splitlines() if line.startswith("memory "))
        peak, roles = re.fullmatch(r"memory           (\S+ [KM]iB) at its peak: (.*)", line).groups()
        names = [role.split()[0] for role in roles.split(", ")]
        self.assertEqual(names[:5], ["parameters", "gradients", "optimizer", "activations", "stash"])
        self.assertIn("inputs", names, "the rows read ahead")
        planned = re.search(r"; (\S+ [KM]iB) planned", self.output)[1]
        self.assertGreaterEqual(self.bytes_of(peak), self.bytes_of(planned))
        self.assertGreaterEqual(sum(self.bytes_of(role.split(" ", 1)[1]) for role in roles.split(", ")), 0.9 * self.bytes_of(peak))

    @staticmethod
    def bytes_of(text):
        number, unit = text.split()
        return float(number) * {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20}[unit]

    def test_report_and_sample_are_made(self):
        report = self.folder / "report.html"
        self.tiny("--report", report, "--sample", "the <red> ")
        self.assertIn("the <red> ", self.output)
        page = report.read_text()
        self.assertIn("the &lt;red&gt; ", page)
        self.assertRegex(page, r"Memory at its peak</h2><table>\s*<tr><td>all</td><td>[0-9.]+ [KM]iB</td></tr>\s*<tr><td>parameters</td>")
        # The page fetches nothing; the SVG namespace is only a name.
        self.assertIsNone(re.search(r"https?://", page.replace("http://www.w3.org/2000/svg", "")))

    def interrupt(self, signal_number):
        log = self.folder / f"interrupted-{int(signal_number)}.jsonl"
        arguments = ["train", "--data", self.text, *TINY, "--steps", "100000000", "--log", log]
        process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 60
        while not (log.exists() and log.read_bytes().count(b"\n") >= 3):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        process.send_signal(signal_number)
        error = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 128 + signal_number)
        self.assertEqual(error, b"")
        return step_lines(log)

    def test_a_signal_ends_the_run_after_a_step_with_the_log_whole(self):
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            lines = self.interrupt(signal_number)
            self.assertEqual([line["step"] for line in lines[:-1]], list(range(1, len(lines))))
            self.assertRegex(lines[-1]["state"], "^[0-9a-f]{32}$")
            self.assertIsNone(lines[-1]["validation_loss"])
        steps = len(lines) - 1
        self.assertLessEqual(steps, 20000, "too many to repeat: it was stopped after its third")
        self.assertEqual(self.tiny(steps=steps)[-1]["state"], lines[-1]["state"], "it equals the start of a whole run")

    def test_a_terminal_gets_a_bar(self):
        ours, theirs = pty.openpty()
        arguments = [PROGRAM, "train", "--data", str(self.text), *TINY, "--steps", "300"]
        process = subprocess.Popen(arguments, stdout=theirs, stderr=subprocess.PIPE)
        os.close(theirs)
        screen = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            screen += piece
        self.assertEqual(process.wait(timeout=60), 0, process.stderr.read())
        process.stderr.close()
        os.close(ours)
        text = screen.decode()
        self.assertRegex(text, r"\r\[#+\] 300/300  loss \d")
        self.assertIn("tokens/s", text)
        self.assertNotRegex(text, r"(?m)^step 1/")


if __name__ == "__main__":
    unittest.main()
