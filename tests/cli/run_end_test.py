"""How `scaletrain train` ends when something outside stops it: a hangup, a limit, a full disk, gradients that stay infinite."""

import resource
import signal
import subprocess
import time
import unittest

from command_line import PROGRAM, TINY, CommandLineTest


class RunEnd(CommandLineTest):
    def command(self, *arguments, steps=4):
        return [PROGRAM, "train", "--data", self.text, *TINY, "--steps", str(steps), *map(str, arguments)]

    def ended(self, *arguments, steps=4, limit=None, out=subprocess.PIPE):
        """Returns (status, stdout, stderr). limit: of a file, in bytes."""
        def under_limit():
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        run = subprocess.run(self.command(*arguments, steps=steps), stdout=out, stderr=subprocess.PIPE, text=True, timeout=120, preexec_fn=under_limit)
        return run.returncode, run.stdout, run.stderr

    def test_a_hangup_saves_and_ends_as_a_termination_does(self):
        for number, status in ((signal.SIGHUP, 129), (signal.SIGTERM, 143)):
            checkpoint = self.folder / f"signal-{number}"
            run = subprocess.Popen(self.command("--checkpoint", checkpoint, steps=10**8), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            while not run.stdout.readline().startswith("step 2/"):
                self.assertIsNone(run.poll())
            run.send_signal(number)
            run.communicate(timeout=60)
            self.assertEqual(run.returncode, status)
            self.assertTrue(list(checkpoint.glob("step-*")), "nothing was saved")

    def test_a_hangup_that_is_ignored_stays_ignored(self):
        run = subprocess.Popen(
            self.command(steps=10**8), stdout=subprocess.PIPE, text=True, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
        )
        while not run.stdout.readline().startswith("step 2/"):
            self.assertIsNone(run.poll())
        run.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        self.assertIsNone(run.poll(), "nohup's run ended")
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=60)
        self.assertEqual(run.returncode, 143)

    def test_without_a_folder_usr1_is_ignored_and_a_signal_says_that_nothing_is_saved(self):
        run = subprocess.Popen(self.command(steps=10**8), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not run.stdout.readline().startswith("step 2/"):
            self.assertIsNone(run.poll())
        run.send_signal(signal.SIGUSR1)
        self.assertRegex(run.stderr.readline(), "SIGUSR1 .*--checkpoint")
        run.send_signal(signal.SIGTERM)
        out, _ = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 143)
        self.assertRegex(out, r"(?m)^not saved +the run has no --checkpoint$")

    def test_a_limit_on_file_sizes_is_a_failed_save_and_training_continues(self):
        status, out, err = self.ended("--checkpoint", self.folder / "limit", "--every", 2, steps=6, limit=20 * 1024)
        self.assertEqual(status, 3, err)
        self.assertIn("step 6/6", out)
        self.assertIn("File too large", err)

    def test_output_that_cannot_be_written_is_a_status(self):
        with open("/dev/full", "w") as full:
            status, _, err = self.ended(out=full)
        self.assertEqual(status, 3)
        self.assertIn("stdout", err)

    def test_a_run_that_only_skips_fails_and_says_how_to_find_the_reason(self):
        status, out, err = self.ended("--optimizer", "sgd", "--lr", "1e30", "--warmup", 0, "--clip", 0, "--momentum", 0, steps=40)
        self.assertEqual(status, 3, out + err)
        self.assertIn("--find-nan", err)
        self.assertIn("skipped", err)

    def test_files_that_will_be_written_are_checked_before_the_first_step(self):
        longer = self.folder / ("r" * 251 + ".html")
        for option in ("--report", "--log", "--trace"):
            status, out, err = self.ended(option, longer)
            self.assertEqual(status, 2, err)
            self.assertNotIn("step 1/", out)
            self.assertIn(option, err)

    def test_a_report_is_written_as_open_would(self):
        private, link = self.folder / "private.html", self.folder / "link.html"
        private.write_text("old")
        private.chmod(0o600)
        link.symlink_to(private)
        self.assertEqual(self.ended("--report", link)[0], 0)
        self.assertTrue(link.is_symlink())
        self.assertEqual(private.stat().st_mode & 0o777, 0o600)
        self.assertIn("<html", private.read_text())
        descriptor = self.folder / "stdout.html"
        descriptor.symlink_to("/proc/self/fd/1")
        status, out, err = self.ended("--report", descriptor)
        self.assertEqual(status, 0, err)
        self.assertIn("<html", out)
        self.assertTrue(descriptor.is_symlink())


if __name__ == "__main__":
    unittest.main()
