"""`scaletrain plan`: what a run would take, on machines that are not here."""

import json
import pathlib
import unittest

from command_line import CommandLineTest, run

# 10 B parameters, few layers: a plan takes a tenth of a second.
TEN_BILLION = ["--layers", 6, "--width", 11776, "--heads", 92, "--context", 2048, "--vocabulary", 51200, "--precision", "fp16", "--optimizer", "adam"]
ON_EIGHT = ["--world", 8, "--machine", "a100-80g"]
SMALL = ["--layers", 4, "--width", 64, "--heads", 4, "--context", 32]


class Plan(CommandLineTest):
    def said(self, *arguments):
        done = run("plan", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        return done.stdout

    def plan(self, *arguments):
        return json.loads(self.said(*arguments, "--json"))

    def refused(self, *arguments, words):
        done = run("plan", *arguments)
        self.assertEqual(done.returncode, 2, (arguments, done.stdout, done.stderr))
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_the_textbook_stands_beside_the_recipe_that_runs(self):
        text = self.said(*TEN_BILLION, *ON_EIGHT, "--batch", 1)
        self.assertRegex(text, r"textbook: 12 bytes a parameter \(weight 2, gradient 2, adam 8\), 10\.\d B parameters: 12\d GB on each rank, 15\.\d GB with ZeRO-3 on 8")
        self.assertRegex(text, r"total +\d+\.\d+  of 85\.040: does not fit, \d+\.\d+ GB too much")
        self.assertRegex(text, r"changes and their prices\n  fits  zero 0 -> [23]: -1\d\d\.\d GB, -\d+ % time")

    def test_a_fix_fits_when_it_is_applied(self):
        wrong = self.plan(*TEN_BILLION, *ON_EIGHT, "--batch", 4)
        self.assertFalse(wrong["fits"])
        fix = wrong["fixes"][0]
        self.assertTrue(fix["fits"])
        options = [word for key, value in fix["recipe"].items() for word in (f"--{key.replace('_', '-')}", value)]
        mended = self.plan(*TEN_BILLION, *ON_EIGHT, "--batch", 4, *options)
        self.assertTrue(mended["fits"])
        self.assertEqual(mended["memory"]["device_total"], fix["device_total"])

    def test_the_plan_has_the_keys_of_the_contract(self):
        plan = self.plan(*SMALL, "--world", 8, "--stages", 2, "--tensor", 2, "--zero", 1, "--accumulate", 4, "--rank", 5, "--machine", "h200")
        self.assertEqual(plan["position"], {"data": 0, "tensor": 1, "stage": 1})
        self.assertEqual(plan["mesh"], {"data": 2, "tensor": 2, "stage": 2})
        memory = plan["memory"]
        kinds = ["parameters", "gradients", "optimizer", "activations", "stash", "buckets", "packed", "workspace", "control", "inputs", "terms", "pinned", "reserved", "recordings"]
        self.assertEqual(sum(memory[kind] for kind in kinds), memory["device_total"] + memory["host_total"])
        self.assertEqual(sum(axis["bytes"] for axis in plan["wire"].values()), plan["wire_bytes"])
        self.assertEqual(sum(axis["collectives"] for axis in plan["wire"].values()), plan["collectives"])
        self.assertTrue(all(plan["wire"][axis]["bytes"] > 0 for axis in ("data", "tensor", "stage")), plan["wire"])
        self.assertAlmostEqual(sum(plan["seconds"].values()), plan["step_seconds"], delta=1e-8)
        self.assertGreater(plan["bubble"], 0)
        self.assertEqual((plan["fits"], plan["fixes"], plan["measured"]), (True, [], False))

    def test_what_one_rank_holds_is_what_its_process_holds(self):
        """The plan of a rank elsewhere is the one that --explain prints of a run here."""
        here = run("train", "--data", self.text, "--explain", *SMALL, "--ranks", 2, "--zero", 1, "--batch", 2, "--threads", 1).stdout
        plan = self.plan(*SMALL, "--vocabulary", 256, "--ranks", 2, "--zero", 1, "--batch", 2, "--threads", 1)
        for kind in ("parameters", "gradients", "optimizer", "activations", "stash"):
            self.assertRegex(here, rf"\n  {kind} +{plan['memory'][kind]} ")

    def test_auto_finds_what_fits(self):
        plan = self.plan(*SMALL, "--world", 4, "--batch", 8, "--machine", "v100-32g", "--device-memory", "1.08G", "--auto")
        self.assertTrue(plan["fits"])
        self.assertEqual(plan["found"][0]["step_seconds"], plan["step_seconds"])
        self.assertEqual(plan["recipe"]["batch"] * plan["recipe"]["accumulate"] * plan["mesh"]["data"], 32)
        nothing = run("plan", *SMALL, "--world", 4, "--batch", 8, "--machine", "v100-32g", "--device-memory", "1.0738G", "--auto")
        self.assertEqual(nothing.returncode, 2)
        self.assertIn("nothing fits; nearest first", nothing.stdout)

    def test_a_plan_that_was_asked_to_fit_and_does_not_ends_with_two(self):
        """And prints all the same; without the question it ends with 0."""
        small = [*SMALL, "--world", 2, "--batch", 4, "--machine", "v100-32g"]
        needs = self.plan(*small)["memory"]["device_total"]
        fits, lacks = (run("plan", *small, "--json", "--device-memory", f"{most}B") for most in (needs, needs - 1))
        self.assertEqual((fits.returncode, fits.stderr), (0, ""))
        self.assertEqual((lacks.returncode, json.loads(lacks.stdout)["fits"]), (2, False))
        self.assertRegex(lacks.stderr, rf"^scaletrain: plan: rank 0 does not fit into --device-memory {needs - 1}B: it needs {needs} bytes, 1 too many; [^\n]*\n$")

    def test_the_step_of_all_ranks_is_simulated(self):
        run_of_16 = [*SMALL, "--world", 16, "--stages", 4, "--accumulate", 8, "--batch", 1, "--machine", "a100-80g"]
        even, slow = self.plan(*run_of_16, "--simulate"), self.plan(*run_of_16, "--slow", "3:3,7:1:2")
        self.assertEqual(sum(of["ranks"] for of in even["simulation"]["classes"]), 16)
        self.assertGreater(slow["simulation"]["step_seconds"], even["simulation"]["step_seconds"])
        good, bad = (self.plan(*run_of_16, "--failures", hours)["goodput"] for hours in ("2000:300:5", "20:300:5"))
        self.assertGreater(good["share"], bad["share"])
        self.assertGreater(good["steps_between_saves"], bad["steps_between_saves"])
        lost = self.plan(*run_of_16, "--failures", "0:300:5:10:3", "--lost-at", "0,900.5", "--run-steps", 95)["goodput"]
        self.assertEqual([lost[key] for key in ("steps", "steps_between_saves", "saves", "lost_nodes", "saving_seconds", "ends")], [95, 10, 10, 1, 50, True])
        self.assertAlmostEqual(lost["seconds"], 95 * even["step_seconds"] + 50 + 300, delta=1e-6)

    def test_a_stage_that_does_not_fit_refuses_the_plan_of_another(self):
        stages = [*SMALL[:-1], 64, "--vocabulary", 8192, "--world", 4, "--zero", 1, "--stages", 2, "--stage-starts", "block.3", "--accumulate", 2, "--batch", 8, "--machine", "v100-16g"]
        first, last = self.plan(*stages)["stages"]
        self.assertEqual((first["rank"], last["rank"]), (0, 2))
        self.assertEqual(last["device_total"], self.plan(*stages, "--rank", 2)["memory"]["device_total"])
        self.assertGreater(last["device_total"], first["device_total"])
        most = ["--device-memory", f"{first['device_total'] / 1e9:.9f}G"]
        done = run("plan", *stages, *most, "--json")
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"rank {last['rank']} does not fit", done.stderr)
        refused = json.loads(done.stdout)
        self.assertEqual((refused["fits"], [of["fits"] for of in refused["stages"]]), (False, [True, False]))
        self.assertTrue(any(fix["fits"] for fix in refused["fixes"]), refused["fixes"])

    def test_a_run_shows_its_prediction_beside_what_it_took(self):
        report = self.folder / "report.html"
        done = run("train", "--data", self.text, "--steps", 3, *SMALL, "--ranks", 2, "--stages", 2, "--accumulate", 2, "--batch", 2, "--threads", 1, "--report", report)
        self.assertEqual(done.returncode, 0, done.stderr)
        for word in ("Predicted and measured", "a step, predicted", "a step, measured (median)", "of a micro-batch", "estimated: the table of processors"):
            self.assertIn(word, report.read_text())

    def test_pictures_are_files_that_stand_alone(self):
        page, trace = self.folder / "plan.html", self.folder / "plan.json"
        self.said(*SMALL, "--world", 8, "--stages", 4, "--accumulate", 6, "--batch", 1, "--machine", "a100-80g", "--report", page, "--trace", trace)
        html = page.read_text()
        for word in ("Memory over a step", "Timeline of the stages, simulated", "Efficiency by number of ranks", "<svg", "16384 ranks"):
            self.assertIn(word, html)
        self.assertNotRegex(html, r"(src|href)=")
        events = json.loads(trace.read_text())
        names = {event["args"]["name"] for event in events if event["name"] == "process_name"}
        self.assertEqual(len(names), 8)
        self.assertTrue(any(event["name"] == "forward 5" for event in events))

    def test_wrong_requests_are_refused(self):
        self.refused("--device-memory", "80", words=["--device-memory is 80 without a unit", "80G"])
        self.refused("--device-memory", "80X", words=["X is no unit"])
        self.refused("--device-memory", "-80G", words=["--device-memory is -80G; give a number of bytes above 0, such as 80G"])
        self.refused("--machine", "a100", words=['machine "a100" is unknown', "did you mean a100-40g, a100-80g?", "--calibrate"])
        self.refused("--machine", "h20", words=["did you mean h200?"])
        self.refused("--device", "cuda:1", words=["plan: --device is cuda:1", "give --machine", "h100-sxm"])
        for option in ("--machine", "--failures", "--slow", "--device-memory", "--report"):
            self.refused(option, "", words=[option, "the value is empty; give one, or leave it out"])
        self.refused("--machine", "none/machine.json", words=["cannot read none/machine.json"])
        other = self.folder / "machine.json"
        other.write_text('{"version": 9}')
        self.refused("--machine", other, words=["version must be 2, got 9", "--calibrate"])
        self.refused("--world", 7, "--stages", 2, words=["7 ranks are not a multiple of 2 stages", "2 x 3 = 6"])
        self.refused("--world", 4, "--rank", 4, words=["rank is 4", "ranks 0 to 3"])
        self.refused("--world", 4, "--ranks", 2, words=["--world is 4, but --ranks is 2"])
        self.refused("--world", 2, "--slow", "1", words=["--slow is 1", "RANK:COMPUTING"])
        self.refused("--failures", "1:2:3:4:5:6", words=["--failures is 1:2:3:4:5:6", "2000:300:5"])
        self.refused("--failures", "1:-2", words=["restart_seconds", "0 to 1e12", "-2"])
        self.refused("--lost-at", "1e13", words=["lost_at must be 0 to 1e12 seconds"])
        self.refused("--run-steps", "9", words=["--run-steps", "give --failures or --lost-at"])
        self.refused("--model", "mlp", words=["--model is mlp; use gpt or llama, or train and plan other models in a program"])
        self.refused("--link", "40g", words=["10g, 25g, 100g, 400g, nvlink"])
        self.refused("--report", pathlib.Path("no/such/folder.html"), words=["cannot write no/such/folder.html"])


if __name__ == "__main__":
    unittest.main()
