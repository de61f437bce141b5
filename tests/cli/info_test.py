"""The output of `scaletrain info`, --help and --version."""

import json
import os
import tempfile
import unittest
import unittest.mock

from command_line import CommandLineTest, run


class Info(CommandLineTest):
    def said(self, *arguments):
        done = run(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def test_json_lists_devices_and_why_one_is_missing(self):
        features = json.loads(self.said("info", "--json"))
        devices = {device["name"]: device for device in features["devices"]}
        self.assertTrue(devices["cpu"]["available"])
        self.assertTrue(devices["reference"]["available"])
        for device in devices.values():
            self.assertTrue(device["kernels"] if device["available"] else device["why"])
            self.assertEqual(device["count"] > 0, device["available"])
        self.assertIn("libscaletrain_cuda.so", devices["cuda"]["why"])
        transports = {transport["name"]: transport for transport in features["transports"]}
        self.assertTrue(transports["threads"]["available"] and transports["shared memory"]["available"])
        for transport in transports.values():
            self.assertTrue(transport["joins"] if transport["available"] else transport["why"])
        self.assertGreaterEqual(features["cores"], 1)
        self.assertGreater(features["memory_bytes"], 0)
        machine = features["machine"]
        self.assertEqual((machine["device"], machine["kernel_class"]), ("cpu", devices["cpu"]["kernels"]))
        self.assertGreaterEqual(machine["memory_bytes"], features["memory_bytes"])
        self.assertTrue(1e8 < machine["measured"]["clock"] < 1e11, machine)
        self.assertGreater(machine["table"]["fp32_flops_per_cycle"], 0)

    def test_text_names_what_the_json_names(self):
        features = json.loads(self.said("info", "--json"))
        text = self.said("info")
        self.assertIn(features["version"], text)
        self.assertIn(features["cpu"]["brand"], text)
        self.assertIn(f'machine     {features["machine"]["kernel_class"]}, threads: {features["machine"]["threads"]},', text)
        for row in features["devices"] + features["transports"]:
            self.assertIn(row["name"], text)
            self.assertIn(row.get("why") or row.get("joins") or row["kernels"], text)

    def test_the_file_of_a_plug_in_is_named(self):
        with tempfile.NamedTemporaryFile(suffix=".so") as file:
            file.write(b"no library")
            file.flush()
            with unittest.mock.patch.dict(os.environ, SCALETRAIN_BACKEND_PATH=file.name):
                text = self.said("info")
                self.assertIn(f"missing: {file.name}: ", text)
                self.assertIn("device      cpu           1, kernels: ", text)

    def test_a_machine_that_cannot_be_known_says_why(self):
        for name, value in (("SCALETRAIN_THREADS", "none"), ("SCALETRAIN_ISA", "avx1024")):
            with unittest.mock.patch.dict(os.environ, {name: value}):
                why = json.loads(self.said("info", "--json"))["machine"]["why"]
                self.assertIn(f"machine     unknown: {why}", self.said("info"))
            self.assertIn(value, why)

    def test_version_is_the_libraries(self):
        self.assertEqual(self.said("--version").strip(), json.loads(self.said("info", "--json"))["version"])

    def test_help_has_every_recipe_key_and_the_exit_statuses(self):
        text = self.said("train", "--help")
        for option in ("--device", "--batch", "--micro-batches", "--lr-schedule", "--weight-decay", "--recipe", "--seed", "--log"):
            self.assertIn(option, text)
        for status in ("2 ", "3 ", "130"):
            self.assertIn(status, text)


if __name__ == "__main__":
    unittest.main()
