"""`scaletrain train` as several processes: they reach the state of one, and end well if a rank is killed, stopped, missing or of another run.

    rank_training_test.py SCALETRAIN FAILING_DISK
"""

import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from command_line import PROGRAM, TINY, CommandLineTest, log_lines, run, step_lines  # noqa: E402
from training_ranks import Ranks  # noqa: E402

FAILING_DISK = sys.argv.pop(1)

FOR_EVER = 1_000_000  # steps


class RankTraining(CommandLineTest):
    def words(self, *more):
        return ["--data", self.text, *TINY, "--micro-batches", 6, "--dropout", 0.1, *more]

    def launched(self, ranks, *words):
        """Expects status 0 and nothing on stderr."""
        done = run("launch", "-n", ranks, "--", PROGRAM, "train", *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done

    def assert_whole(self, checkpoints, where=None):
        found = run("checkpoint", "verify", checkpoints)
        self.assertEqual(found.returncode, 0, (where, found.stdout, found.stderr))

    # --- undisturbed

    def test_leaves_the_log_and_state_of_one_process(self):
        alone = self.train(*self.words("--steps", 6))
        for ranks in (2, 3):
            log = self.folder / f"of-{ranks}.jsonl"
            done = self.launched(ranks, *self.words("--steps", 6, "--log", log))
            lines = step_lines(log)
            self.assertEqual([(line.get("loss"), line.get("grad_norm")) for line in lines],
                             [(line.get("loss"), line.get("grad_norm")) for line in alone])
            self.assertEqual(lines[-1], alone[-1])
            self.assertTrue(all(line.startswith("[rank 0]") for line in done.stdout.splitlines()), done.stdout)
            self.assertIn(f"on each of {ranks} ranks", done.stdout)

    def test_ends_and_goes_on_with_another_number_of_ranks(self):
        undisturbed = self.train(*self.words("--steps", 400))[-1]
        words = self.words("--steps", 400, "--checkpoint", self.folder / "run", "--resume", "--log", self.folder / "log.jsonl")
        process = subprocess.Popen([PROGRAM, "launch", "-n", "3", "--", PROGRAM, "train", *map(str, words)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        while "step 3/" not in process.stdout.readline():
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, err), (143, "scaletrain: launch: ended by SIGTERM\n"))
        self.assertIn("ended by signal 15 after a whole step", out)
        # 6 micro-batches on 3 ranks are --accumulate 2, and stay 6 on 2 ranks.
        done = self.launched(2, *["--accumulate" if word == "--micro-batches" else 2 if word == 6 else word for word in words])
        self.assertIn("resumed", done.stdout)
        self.assertEqual(log_lines(self.folder / "log.jsonl")[-1], undisturbed)

    # --- with sharded state (zero 1 to 3), which the ranks save together

    def test_with_pieces_of_the_state_goes_on_with_other_numbers_of_ranks(self):
        undisturbed = self.train(*self.words("--steps", 16))[-1]
        words = self.words("--checkpoint", self.folder / "run", "--resume", "--log", self.folder / "log.jsonl")
        for ranks, zero, stages, steps in ((3, 3, 1, 4), (2, 1, 1, 8), (4, 0, 2, 12)):
            self.launched(ranks, *words, "--zero", zero, "--stages", stages, "--every", 3, "--steps", steps)
            if zero == 3:
                files = {file.name for file in (self.folder / "run" / "step-00000004").iterdir()}
                self.assertEqual(files, {"manifest.json", "model.safetensors.index.json",
                                         *(f"{kind}-0000{i}-of-00003.safetensors" for kind in ("model", "optimizer") for i in (1, 2, 3))})
        done = run("train", *words, "--steps", 16)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(log_lines(self.folder / "log.jsonl")[-1], undisturbed)

    def test_on_tensor_ranks_goes_on_with_other_ranks_beside_them(self):
        tensor = self.words("--heads", 2, "--tensor", 2)
        undisturbed = self.train(*tensor, "--steps", 8)[-1]
        words = [*tensor, "--checkpoint", self.folder / "run", "--resume", "--log", self.folder / "log.jsonl"]
        for ranks, zero, stages, steps in ((2, 0, 1, 2), (4, 3, 1, 4), (4, 1, 2, 6)):
            self.launched(ranks, *words, "--zero", zero, "--stages", stages, "--every", 1, "--steps", steps)
        done = run("train", *words, "--steps", 8)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(log_lines(self.folder / "log.jsonl")[-1], undisturbed)

    def test_with_pieces_of_the_weights_continues_a_text(self):
        words = self.words("--steps", 2, "--sample", "the ", "--heads", 2)

        def sample_of(done):
            out = "\n".join(line.removeprefix("[rank 0] ") for line in done.stdout.splitlines())
            return out[out.index("sample  "):out.index("memory  ")]

        for degree, pieces in ((1, (("--zero", 3), ("--stages", 2))), (2, ((), ("--zero", 1)))):
            by_itself = run("train", *words, "--tensor", degree)
            self.assertEqual((by_itself.returncode, by_itself.stderr), (0, ""))
            alone = sample_of(by_itself)
            self.assertGreater(len(alone), 200)
            for own in pieces:
                self.assertEqual(sample_of(self.launched(2 * degree if own else 2, *words, "--tensor", degree, *own)), alone)
        done = run("launch", "-n", 2, "--", "sh", "-c", f'"$0" train "$@" --zero 3 --sample "$RANK"', PROGRAM, *self.words("--steps", 2))
        self.assertIn("--sample is 1 on rank 1 and 0 on rank 0", done.stderr)

    def test_a_rank_that_is_killed_in_a_save_leaves_whole_checkpoints(self):
        chance = random.Random()
        undisturbed = self.train(*self.words("--steps", 300))[-1]
        for trial in range(3):
            checkpoints, log = self.folder / f"killed{trial}", self.folder / f"killed{trial}.jsonl"
            words = self.words("--zero", 1 + trial, "--steps", 300, "--checkpoint", checkpoints, "--resume", "--log", log)
            ranks = Ranks(self, 3, [*words, "--every", 1])
            victim = trial  # including rank 0, which commits
            ranks.until_saved(checkpoints)
            pause = chance.uniform(0, 0.05)
            time.sleep(pause)
            where = f"rank {victim} is killed {pause} s after the first save"
            ranks[victim].kill()
            killed = time.monotonic()
            outcomes, ended = ranks.ends(20)
            self.assertLess(ended - killed, 1.5, where)
            for rank, (status, err) in enumerate(outcomes):
                if rank != victim:
                    self.assertEqual(status, 3, (where, err))
                    self.assertIn(f"rank {victim} ({socket.gethostname()}, process {ranks[victim].pid})", err, where)
            done = run("launch", "-n", 2, "--", PROGRAM, "train", *words)  # nothing of the killed save is used
            self.assertEqual(done.returncode, 0, (where, done.stderr))
            self.assertIn("resumed", done.stdout, where)
            self.assertNotIn("skipped   ", done.stdout, where)
            self.assertEqual(log_lines(log)[-1], undisturbed, where)
            self.assertEqual({name for name in os.listdir(checkpoints) if not name.startswith("step-")}, {"latest", "lock"}, where)
            self.assertTrue(all((checkpoints / name / "manifest.json").exists() for name in os.listdir(checkpoints) if "step-" in name), where)

    def test_a_rank_that_is_stopped_in_a_save_ends_it_at_the_deadline(self):
        for victim in (0, 1):
            checkpoints = self.folder / f"stopped{victim}"
            ranks = Ranks(self, 2, self.words("--zero", 2, "--steps", FOR_EVER, "--checkpoint", checkpoints, "--every", 1, "--deadline", 1.2))
            ranks.until_saved(checkpoints)
            ranks[victim].send_signal(signal.SIGSTOP)
            stopped = time.monotonic()
            _, err = ranks[1 - victim].communicate(timeout=20)
            self.assertLess(time.monotonic() - stopped, 1.2 + 1.5, err)
            self.assertEqual(ranks[1 - victim].returncode, 3, err)
            self.assertIn(f"rank {victim}", err)
            ranks[victim].send_signal(signal.SIGCONT)
            ranks[victim].communicate(timeout=20)  # it may still clear up
            self.assert_whole(checkpoints)

    def test_a_disk_that_fails_one_rank_fails_the_save_and_not_the_run(self):
        undisturbed = self.train(*self.words("--steps", 6))[-1]
        for call, at in (("fsync", 2), ("pwrite", 4), ("rename", 1)):
            for victim in (0, 1):
                checkpoints, log = self.folder / f"{call}{victim}", self.folder / f"{call}{victim}.jsonl"
                saved = checkpoints.resolve() / "step-00000001.part"  # without the files of heartbeats, whose writes depend on the time
                disk = {"LD_PRELOAD": FAILING_DISK, "ST_FAIL_CALL": call, "ST_FAIL_AT": at, "ST_FAIL_UNDER": saved}
                words = self.words("--zero", 2, "--steps", 6, "--checkpoint", checkpoints, "--every", 1, "--log", log)
                ranks = Ranks(self, 2, words, set_for=lambda rank: disk if rank == victim else {})
                outcomes, _ = ranks.ends()
                where = (call, victim, outcomes)
                self.assertEqual([status for status, _ in outcomes], [0, 0], where)
                self.assertIn("a checkpoint was not saved", outcomes[0][1], where)
                if victim == 1:
                    self.assertIn("rank 1", outcomes[0][1], where)
                self.assertEqual(log_lines(log)[-1], undisturbed, where)
                self.assert_whole(checkpoints, where)

    # --- ranks that fail

    def test_a_rank_that_is_missing_at_the_start_is_named(self):
        outcomes, _ = Ranks(self, 3, self.words("--steps", 3, "--deadline", 0.5), last=2).ends()
        for status, err in outcomes:
            self.assertEqual(status, 3, err)
            self.assertIn("not all 3 ranks joined within 0.5 s; missing: 2", err)

    def test_a_stage_or_tensor_rank_that_is_killed_or_stopped_is_named_on_all_others(self):
        deadline = 1.2
        for how, count, own in ((signal.SIGKILL, 4, ("--stages", 2)), (signal.SIGSTOP, 4, ("--stages", 2, "--schedule", "zb-v")),
                                (signal.SIGSTOP, 3, ("--stages", 3)), (signal.SIGKILL, 4, ("--tensor", 2)),
                                (signal.SIGSTOP, 4, ("--tensor", 2, "--stages", 2))):
            words = (*own, "--zero", 1, "--steps", FOR_EVER, "--deadline", deadline)
            ranks = Ranks(self, count, [*self.words(*words), "--layers", 4, "--heads", 2])
            ranks.until_step(2)
            pause = random.uniform(0, 0.05)
            time.sleep(pause)
            victim = random.randrange(len(ranks.processes))
            where = (how, own, victim, pause)
            ranks[victim].send_signal(how)
            began = time.monotonic()
            for rank, process in enumerate(ranks.processes):
                if rank == victim:
                    continue
                err = process.communicate(timeout=20)[1]
                self.assertEqual(process.returncode, 3, (where, rank, err))
                self.assertRegex(err, rf"rank {victim} \(([^)]*; )?{socket.gethostname()}, process {ranks[victim].pid}\)", (where, rank))
            self.assertLess(time.monotonic() - began, 1 if how == signal.SIGKILL else deadline + 1.5, where)

    def test_a_rank_of_another_run_is_refused_with_both_sides(self):
        other = self.file("other.txt", self.text.read_text().replace("red", "sea"))
        for words, told in ((["--lr", "0.002"], "rank 1 has lr 0.002, rank 0 has 0.001"), (["--layers", 2], "parameters"),
                            (["--data", other], "data, by digest")):
            ranks = Ranks(self, 2, self.words("--steps", 3), of_rank=lambda rank: words if rank == 1 else ())
            for status, err in ranks.ends()[0]:
                self.assertEqual(status, 2, err)
                self.assertEqual(len(err.splitlines()), 1, err)
                for word in ("rank 1", told.split(" has ")[-1]):
                    self.assertIn(word, err)

    def test_a_rank_of_another_kernel_class_is_refused_with_both_sides(self):
        if os.environ.get("SCALETRAIN_ISA") == "portable":
            self.skipTest("all ranks are to run portable kernels")
        outcomes, _ = Ranks(self, 2, self.words("--steps", 3), set_for=lambda rank: {"SCALETRAIN_ISA": "portable"} if rank == 1 else {}).ends()
        for status, err in outcomes:
            self.assertEqual(status, 2, err)
            self.assertRegex(err, r"rank 1\b.* has kernels cpu portable, rank 0 has cpu \w+; make them equal on all ranks")

    def test_an_option_that_one_rank_alone_has_is_named(self):
        outcomes, _ = Ranks(self, 2, self.words("--steps", 3), of_rank=lambda rank: ("--log", self.folder / "log") if rank == 1 else ()).ends()
        self.assertEqual([status for status, _ in outcomes], [3, 2], outcomes)
        for _, err in outcomes:
            self.assertIn("--log is given on rank 1 and not given on rank 0", err)

    def test_rank_0_that_saves_or_starts_past_the_deadline_is_waited_for_while_it_lives(self):
        def slow_disk(call):
            disk = {"LD_PRELOAD": FAILING_DISK, "ST_FAIL_CALL": call, "ST_FAIL_SECONDS": 4, "ST_FAIL_UNDER": folder}
            return lambda rank: disk if rank == 0 else {}

        folder = self.folder / "run"
        words = self.words("--deadline", 1.5, "--checkpoint", folder, "--every", 2, "--resume")
        for steps, call in ((4, "fsync"), (6, "rmdir")):
            began = time.monotonic()
            outcomes, ended = Ranks(self, 2, [*words, "--steps", steps], set_for=slow_disk(call)).ends()
            self.assertEqual(outcomes, [(0, ""), (0, "")])
            self.assertGreater(ended - began, 4, "nothing was slow")
            (folder / "step-00000077.part").mkdir()  # for the next start to clear up

    def test_what_each_rank_does_is_told_where_it_is_asked_for(self):
        outcomes, _ = Ranks(self, 2, self.words("--steps", 2), set_for=lambda rank: {"SCALETRAIN_DEBUG": "ranks"}).ends()
        for rank, (status, err) in enumerate(outcomes):
            self.assertEqual(status, 0, err)
            self.assertTrue(all(line.startswith(f"rank {rank}, ") for line in err.splitlines()), err)
            self.assertIn(f"rank {rank}, communicator: rank {rank} of 2 by shared memory", err)
            self.assertIn(f"rank {rank}, trainer: planned", err)

    def test_what_is_wrong_on_rank_0_alone_ends_the_others_with_its_reason(self):
        folder = self.folder / "run"
        self.train(*self.words("--steps", 2, "--checkpoint", folder))
        outcomes, _ = Ranks(self, 2, self.words("--steps", 3, "--checkpoint", folder)).ends()
        self.assertEqual(outcomes[0][0], 2)
        self.assertIn("holds checkpoints of a run", outcomes[0][1])
        self.assertIn("holds checkpoints of a run", outcomes[1][1])
        # A rank that only gets the error of another ends with 3: with 2 a launcher would not restart a job that lost a rank at its start.
        outcomes, _ = Ranks(self, 2, self.words("--steps", 3), of_rank=lambda rank: ("--data", self.folder / "none") if rank == 1 else ()).ends()
        self.assertEqual([status for status, _ in outcomes], [3, 2], outcomes)
        self.assertIn("rank 1", outcomes[0][1])

    def test_a_lost_rank_is_made_good_by_a_restart_also_with_fewer(self):
        undisturbed = self.train(*self.words("--steps", 120))[-1]
        for fewest, zero in ((3, 1), (2, 0), (2, 3)):
            checkpoints, log = self.folder / f"run{fewest}{zero}", self.folder / f"launched{fewest}{zero}.jsonl"
            words = self.words("--zero", zero, "--steps", 120, "--checkpoint", checkpoints, "--every", 5, "--resume", "--log", log)
            script = self.file("rank.sh", f""""$@" & training=$!
                [ $SCALETRAIN_RESTART$RANK = 01 ] && {{ until ls {checkpoints}/step-????????/manifest.json >/dev/null 2>&1; do sleep 0.01; done; kill -9 $training; }}
                wait $training
                """)
            done = run("launch", "-n", 3, "--restarts", 1, "--min-ranks", fewest, "sh", script, PROGRAM, "train", *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"restart 1 of 1, with {fewest} ranks", done.stderr)
            self.assertEqual(log_lines(log)[-1], undisturbed)


if __name__ == "__main__":
    unittest.main()
