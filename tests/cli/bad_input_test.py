"""A wrong request ends with status 2 and one line on stderr that names the mistake and the way out."""

import os
import struct
import unittest
import unittest.mock

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

    def test_commands_that_are_not_there_are_named(self):
        self.refused(words=["no command", "train"])
        self.refused("trian", words=["trian", "did you mean train?"])
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
        for option, ours in (("--learning-rate", "--lr"), ("--gradient-accumulation-steps", "--accumulate"), ("--epochs=3", "--steps")):
            self.train_refused(option, 1, words=[f"did you mean {ours}?"])
        self.train_refused("--groups", '{"pattern": "*"}', words=["--groups", "must be a list of objects"])
        self.refused("info", "--jason", words=["--jason", "did you mean --json?"])

    def test_values_that_are_no_numbers_are_shown(self):
        self.train_refused("--batch", "many", words=["--batch", '"many"', "whole number"])
        self.train_refused("--batch", "1.5", words=["--batch", "got 1.5", "whole number"])
        self.train_refused("--nesterov=3", words=["--nesterov: recipe: nesterov must be true or false, got 3"])
        for value in ("fast", "nan"):
            self.train_refused("--lr", value, words=["--lr", f'"{value}"', "number"])
        self.train_refused("--layers", "99999999999999999999", words=["--layers", "whole number"])

    def test_a_missing_value_and_a_stray_word_are_refused(self):
        self.refused("train", "--data", self.text, "--steps", words=["--steps"])
        self.train_refused("quickly", words=["quickly"])

    def test_steps_are_at_least_one(self):
        self.train_refused("--steps", 0, words=["--steps", "0", "at least 1"])
        self.train_refused("--steps", 2**40 + 1, words=["--steps", str(2**40 + 1), f"at most {2**40}"])
        self.refused("train", "--data", self.text, words=["--steps is missing"])

    def test_what_the_library_refuses_is_said_in_its_words(self):
        self.train_refused("--lr", -0.1, words=["--lr: recipe: lr must be a number in [0, inf), got -0.1"])
        self.train_refused("--optimizer", "adamww", words=["optimizer", "adamww", "adamw"])
        self.train_refused("--device", "tpu", words=["device", "tpu", "cpu", "cuda"])
        with unittest.mock.patch.dict(os.environ):
            os.environ.pop("SCALETRAIN_BACKEND_PATH", None)
            self.train_refused("--device", "cuda", words=["device cuda is not installed: there is no", "/libscaletrain_cuda.so", "SCALETRAIN_BACKEND_PATH"])
        self.train_refused("--device", "cuda:x", words=["NAME:INDEX", '"cuda:x"', "INDEX is a whole number from 0 to 999999999: cuda:0, cuda:1"])
        self.train_refused("--batch", 3, "--global-batch", 4, words=["batch 3 x 1", "makes 3", "global_batch is 4", "a multiple of 3"])
        self.train_refused("--lr-schedule", "cosine", "--warmup", 9, "--lr-steps", 9, words=["cosine", "warmup 9", "lr_steps 9"])

    def test_fp32_scopes_that_are_not_there_name_those_that_are(self):
        self.train_refused("--precision", "bf16", "--fp32-scopes", "haed", words=["fp32_scopes", 'did you mean "head"?', "block.0.mlp", "use none"])
        self.train_refused("--fp32-scopes", "block.0,block.9", words=['"block.9"'])
        self.train_refused("--fp32-scopes", "", words=["fp32_scopes", '""', "none"])

    def test_sizes_that_cannot_be_are_refused(self):
        self.train_refused("--context", 0, words=["--context", "0"])
        self.train_refused("--context", 1000000, words=["tokens", "1000001", "text.txt"])
        self.train_refused("--vocabulary", 100, words=["--vocabulary 100", "255", "256"])
        self.train_refused("--layers", 100, "--width", 65536, "--heads", 64, words=["needs", "is available"])

    def test_options_of_another_model_are_refused(self):
        llama = ["--model", "llama"]
        self.train_refused("--model", "mlp", words=["--model is mlp; use gpt or llama, or train and plan other models in a program"])
        self.train_refused("--kv-heads", 1, words=["--kv-heads is an option of the model llama, but --model is gpt"])
        self.train_refused("--tied-embedding", words=["--tied-embedding is an option of the model llama"])
        self.train_refused(*llama, "--activation", "gelu", words=["--activation is an option of the model gpt, but --model is llama"])
        self.train_refused(*llama, "--kv-heads", 3, words=["llama: groups must divide heads", "got groups 3 and heads 2"])
        self.train_refused(*llama, "--ffn", "wide", words=["--ffn", '"wide"', "whole number"])

    def test_data_that_cannot_be_read_is_named(self):
        self.refused("train", "--steps", 1, words=["--data is missing"])
        self.refused("train", "--steps", 1, "--data", self.folder / "absent.txt", words=["absent.txt"])
        self.refused("train", "--steps", 1, "--data", self.file("short.txt", "short"), words=["short.txt", "5 tokens"])

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
        self.train_refused("--recipe", self.file("empty.json", ""), words=["empty.json is empty"])
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
            # Files that the data reader skips, and paths that only look like the folder.
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
