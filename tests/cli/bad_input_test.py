"""A wrong request ends with status 2 and one line on stderr that says what was wrong and how to go on."""

import os
import struct
import unittest

from command_line import TINY, CommandLineTest, run


class BadInput(CommandLineTest):
    def refused(self, *arguments, words):
        done = run(*arguments)
        self.assertEqual(done.returncode, 2, (arguments, done.stdout, done.stderr))
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("scaletrain: "), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def train_refused(self, *arguments, words):
        self.refused("train", "--data", self.text, "--steps", 3, *TINY, *arguments, words=words)

    def test_batches_that_do_not_make_the_global_batch_show_the_numbers(self):
        self.train_refused("--batch", "auto", words=["batch is auto", "give global_batch"])
        self.train_refused("--batch", 3, "--global-batch", 4, words=["batch 3 x 1", "makes 3", "global_batch is 4", "a multiple of 3"])
        self.train_refused("--accumulate", "auto", words=["accumulate is a whole number"])

    def test_commands_that_are_not_there_are_named(self):
        self.refused(words=["no command", "train"])
        self.refused("trian", words=["trian", "did you mean train?"])
        self.refused("plan", words=["plan", "not in this version"])
        self.refused("--verbose", words=["unknown option --verbose"])
        self.refused("bench", "everything", words=["unknown benchmark everything", "step, gemm, optimizer, collective"])
        self.refused("bench", words=["step", "gemm"])
        self.refused("bench", "step", "--rounds", 0, words=["--rounds", "0"])
        self.refused("bench", "step", "--against", "mkl", words=["mkl", "pytorch", "none"])
        self.refused("bench", "step", "--against", "", words=["--against", "pytorch"])
        self.refused("bench", "step", "--dtype", "fp16", words=["--dtype", "fp16", "fp32", "bf16"])
        self.refused("bench", "gemm", "--memory", words=["--memory", "bench step"])
        self.refused("bench", "step", "--memory", "--shapes", "all", words=["--memory", "--shapes"])
        self.refused("bench", "step", "--memory", "--dtype", "bf16", words=["--memory", "--dtype"])
        self.refused("bench", "step", "--tiles", words=["--tiles", "bench gemm"])

    def test_an_unknown_option_names_the_nearest(self):
        self.train_refused("--widht", 32, words=["--widht", "did you mean --width?"])
        self.train_refused("--learning-rat=1", words=["--learning-rat"])
        self.train_refused("--groups", '{"pattern": "*"}', words=["--groups", "give a list as JSON"])
        self.train_refused("--groups", '[{"pattern": "blok.*"}]', words=["no parameter fits the pattern", "blok.*", "block.0."])
        self.train_refused("--groups", '[{"patern": "*"}]', words=["patern", "did you mean", "pattern"])
        self.train_refused("--batchsize", 3, words=["--batchsize", "did you mean --batch?"])
        self.refused("info", "--jason", words=["--jason", "did you mean --json?"])

    def test_options_of_later_versions_say_so(self):
        for option in ("--stages", "--tensor"):
            self.train_refused(option, 1, words=["unknown option " + option, "not in this version yet"])

    def test_values_that_are_no_numbers_are_shown(self):
        self.train_refused("--batch", "many", words=["--batch", '"many"', "whole number"])
        self.train_refused("--batch", "1.5", words=["--batch", '"1.5"', "whole number"])
        self.train_refused("--lr", "fast", words=["--lr", '"fast"', "number"])
        self.train_refused("--lr", "nan", words=["--lr", '"nan"', "number"])
        self.train_refused("--layers", "99999999999999999999", words=["--layers", "whole number"])

    def test_a_missing_value_and_a_stray_word_are_refused(self):
        self.refused("train", "--data", self.text, "--steps", words=["--steps"])
        self.train_refused("quickly", words=["quickly"])

    def test_steps_are_at_least_one(self):
        self.train_refused("--steps", 0, words=["--steps", "0", "at least 1"])
        self.train_refused("--steps", -3, words=["--steps", "-3", "at least 1"])
        self.train_refused("--steps", 2**40 + 1, words=["--steps", str(2**40 + 1), f"at most {2**40}"])
        self.refused("train", "--data", self.text, words=["--steps is missing"])

    def test_recipe_values_out_of_range_name_the_range(self):
        self.train_refused("--lr", -0.1, words=["lr", "-0.1", "[0,inf)"])
        self.train_refused("--batch", 0, words=["batch", "0", "[1,inf)"])
        self.train_refused("--clip", -1, words=["clip", "-1"])
        self.train_refused("--ema-decay", 1, words=["ema_decay", "1", "[0,1)"])
        self.train_refused("--ema-decay", "slow", words=["--ema-decay", '"slow"', "number"])
        self.train_refused("--dropout", 1.5, words=["dropout", "1.5", "[0,1)"])
        self.train_refused("--optimizer", "adamww", words=["optimizer", "adamww", "adamw"])
        self.train_refused("--precision", "fp8", words=["precision", "fp8", "fp32"])
        self.train_refused("--device", "tpu", words=["device", "tpu", "cpu"])

    def test_fp32_scopes_that_are_not_there_name_those_that_are(self):
        self.train_refused("--precision", "bf16", "--fp32-scopes", "haed", words=["fp32_scopes", 'is "head" meant?', "block.0.mlp", "use none"])
        self.train_refused("--fp32-scopes", "block.0,block.9", words=['"block.9"'])
        self.train_refused("--fp32-scopes", "", words=["fp32_scopes", '""', "none"])

    def test_scopes_to_recompute_that_are_not_there_name_those_that_are(self):
        self.train_refused("--recompute", "blocks.*", words=['"blocks.*"', "embedding", "block.0.mlp", "head"])
        self.train_refused("--recompute", "block.0.mpl", words=['is "block.0.mlp" meant?'])
        self.train_refused("--recompute", "no such", words=["recompute", '"no such"', "none blocks attention full auto"])
        self.train_refused("--recompute", "", words=["recompute", '""', "none blocks"])
        self.train_refused("--recompute-budget", -1, words=["recompute_budget", "-1", "[0,inf)"])
        self.train_refused("--recompute-budget", 5000, words=["recompute_budget is 5000", "recompute is none", "auto"])
        self.train_refused("--recompute", "auto", "--recompute-budget", 5000, words=["5000 bytes", "least", "recompute_budget"])

    def test_contradictions_are_refused(self):
        self.train_refused("--accumulate", 2, "--micro-batches", 3, words=["accumulate", "micro_batches"])
        self.train_refused("--gradient-noise-scale", words=["gradient_noise_scale", "one micro-batch of 2 rows", "accumulate 2 or more"])

    def test_a_schedule_that_contradicts_itself(self):
        self.train_refused("--lr-schedule", "cosine", "--warmup", 9, "--lr-steps", 9, words=["cosine", "warmup 9", "lr_steps 9"])
        self.train_refused("--lr-schedule", "linear", "--warmup", 0, "--lr", 0.1, "--lr-min", 0.2, words=["lr_min 0.2", "lr 0.1"])
        self.train_refused("--lr-schedule", "wsd", "--warmup", 0, words=["wsd", "lr_decay_steps", "unset"])
        self.train_refused("--lr-schedule", "wsd", "--warmup", 5, "--lr-steps", 9, "--lr-decay-steps", 5,
                           words=["lr_decay_steps 5", "warmup 5", "lr_steps 9"])
        self.train_refused("--lr-schedule", "table", "--lr-table", "0:1 5:2 4:1", words=["lr_table", "step 4", "step 5"])
        self.train_refused("--lr-schedule", "table", words=["lr_table", "empty"])
        self.train_refused("--lr-schedule", "cosin", words=["lr_schedule", '"cosin"', "cosine"])

    def test_models_that_cannot_be_are_refused(self):
        self.train_refused("--width", 18, "--heads", 4, words=["width", "18", "heads", "4"])
        self.train_refused("--layers", 0, words=["layers", "0"])
        self.train_refused("--context", 0, words=["--context", "0"])
        self.train_refused("--vocabulary", 100, words=["--vocabulary 100", "255", "256"])
        self.train_refused("--model", "gtp", words=["gtp", "gpt"])

    def test_a_model_that_does_not_fit_says_what_it_needs_and_what_there_is(self):
        self.train_refused("--layers", 100, "--width", 65536, "--heads", 64, words=["needs", "there is"])

    def test_a_context_longer_than_the_data_says_how_much_there_is(self):
        self.train_refused("--context", 1000000, words=["tokens", "1000001", "text.txt"])

    def test_data_that_cannot_be_read_is_named(self):
        self.refused("train", "--steps", 1, words=["--data is missing"])
        self.refused("train", "--steps", 1, "--data", self.folder / "absent.txt", words=["absent.txt"])
        self.refused("train", "--steps", 1, "--data", self.file("empty.txt", ""), words=["empty.txt", "empty"])
        self.refused("train", "--steps", 1, "--data", self.file("short.txt", "short"), words=["short.txt", "5 tokens"])
        self.refused("train", "--steps", 1, "--data", self.file("latin.txt", b"caf\xe9 " * 100), words=["latin.txt", "UTF-8"])
        empty = self.folder / "folder"
        empty.mkdir()
        self.refused("train", "--steps", 1, "--data", empty, words=["folder"])

    @unittest.skipIf(os.geteuid() == 0, "root reads everything")
    def test_unreadable_data_is_named(self):
        self.text.chmod(0)
        self.train_refused(words=["text.txt"])

    def test_the_split_is_a_share(self):
        self.train_refused("--validation", 1, words=["--validation", "1"])
        self.train_refused("--validation", -0.5, words=["--validation", "-0.5"])

    def test_recipe_files_that_are_wrong_are_named(self):
        self.train_refused("--recipe", self.folder / "absent.json", words=["absent.json"])
        self.train_refused("--recipe", self.file("broken.json", "{"), words=["broken.json"])
        self.train_refused("--recipe", self.file("typo.json", '{"btach": 3}'), words=["typo.json", "btach", '"batch"'])
        self.train_refused("--recipe", self.file("list.json", "[1]"), words=["list.json", "object"])

    def test_files_that_cannot_be_written_are_refused_before_training(self):
        for option in ("--log", "--report"):
            self.train_refused(option, self.folder / "absent" / "file", words=[option, "absent"])
            self.train_refused(option, self.folder, words=[option, "folder"])
            before = self.text.read_bytes()
            self.train_refused(option, self.text, words=[option, "is the data"])
            self.assertEqual(self.text.read_bytes(), before)
        both = self.folder / "both"
        self.train_refused("--log", both, "--report", both, words=["--log", "--report", "both"])

    def test_output_into_the_data_folder_is_refused(self):
        data = self.folder / "data"
        for name in ("sub", "sub/build", ".hidden"):
            (data / name).mkdir(parents=True)
        (data / "text.txt").write_bytes(self.text.read_bytes())
        (data / "out").symlink_to(self.folder / "elsewhere")  # the reader of data follows links to files
        (self.folder / "link").symlink_to(data / "sub")
        for option in ("--log", "--report"):
            for path in (data / "new", data / "text.txt", data / "sub" / "new", data / "out", self.folder / "link" / "new"):
                self.train_refused("--data", data, option, path, words=[option, path.name, "data folder", "would train on it"])
            # What the reader of data skips, and what only looks like the folder.
            for path in (data / ".new", data / ".hidden" / "new", data / "sub" / "build" / "new", data / ".." / "new", self.folder / "database"):
                done = run("train", "--data", data, "--steps", 1, *TINY, option, path)
                self.assertEqual((done.returncode, done.stderr), (0, ""), path)
        self.assertEqual((data / "text.txt").read_bytes(), self.text.read_bytes())

    def test_a_token_file_with_false_ids_names_the_token(self):
        # runtime/data/README.md: magic, version, bytes of an id, vocabulary, count.
        ids = [i % 300 for i in range(400)]
        ids[7] = 301
        path = self.file("false.bin", b"STTOKENS" + struct.pack("<IIQQ400H", 1, 2, 300, 400, *ids))
        self.refused("train", "--steps", 200, "--data", path, *TINY, words=["301", "false.bin"])
        self.refused("train", "--steps", 1, "--data", path, *TINY, "--sample", "text", words=["--sample", "not bytes"])


if __name__ == "__main__":
    unittest.main()
