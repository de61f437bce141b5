"""`scaletrain train --trace`: a timeline of every rank as a list of spans."""

import json
import re
import unittest

from command_line import PROGRAM, TINY, CommandLineTest, run, step_lines

TRAIN = ("train", *TINY, "--steps", "4")


class Trace(CommandLineTest):
    def traced(self, *launcher, more=()):
        path = self.folder / "trace.json"
        done = run(*launcher, *TRAIN, "--data", self.text, "--trace", path, *more)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(path.read_text())

    def steps(self, events, rank):
        found = [event for event in events if event["ph"] == "X" and event["pid"] == rank and event["name"].startswith("step ")]
        self.assertEqual([event["name"] for event in found], ["step 1", "step 2", "step 3", "step 4"])
        for earlier, later in zip(found, found[1:]):
            self.assertLessEqual(earlier["ts"] + earlier["dur"], later["ts"])
        return found

    def assert_shows_both_ranks(self, events):
        self.assertEqual({event["args"]["name"] for event in events if event["name"] == "process_name"}, {"rank 0", "rank 1"})
        rows = {event["args"]["name"]: event["tid"] for event in events if event["name"] == "thread_name"}
        self.assertEqual(set(rows), {"steps", "computing", "exchange"})
        sequences, stragglers, computing = [], [], []
        for rank in (0, 1):
            spans = [event for event in events if event["ph"] == "X" and event["pid"] == rank]
            exchanges = [event for event in spans if event["tid"] == rows["exchange"]]
            sequences.append([(event["args"]["sequence"], event["name"]) for event in exchanges])
            self.assertTrue(all(0 <= event["args"]["hidden"] <= 1 for event in exchanges))
            steps = self.steps(events, rank)
            for step in steps:
                self.assertEqual(step["tid"], rows["steps"])
                end = step["ts"] + step["dur"]
                inside = [event for event in exchanges if step["ts"] <= event["ts"] and event["ts"] + event["dur"] <= end]
                self.assertTrue(any(event["name"].startswith("reduce_scatter gradient.") for event in inside), step)
                self.assertLessEqual(sum(event["dur"] for event in inside), step["dur"])
                self.assertTrue(0 <= step["args"]["hidden"] <= 1 and step["args"]["exchange_ms"] > 0, step)
                # It computes between its exchanges.
                computed = [event for event in spans if event["tid"] == rows["computing"] and step["ts"] <= event["ts"] < end]
                self.assertGreater(len(computed), 1)
                for earlier, later in zip(computed, computed[1:]):
                    self.assertLessEqual(earlier["ts"] + earlier["dur"], later["ts"])
                self.assertLessEqual(computed[-1]["ts"] + computed[-1]["dur"], end)
                self.assertEqual({event["args"]["straggler"] for event in computed}, {step["args"]["straggler"]})
                self.assertAlmostEqual(sum(event["dur"] for event in computed) * 1e-3, step["args"]["computing_ms"], delta=0.05)
            stragglers.append([step["args"]["straggler"] for step in steps])
            computing.append([step["args"]["computing_ms"] for step in steps])
        # Both ranks have the same collectives; the ones after the last step are in neither.
        self.assertEqual(sequences[0], sequences[1])
        self.assertEqual(sequences[0], sorted(set(sequences[0])))
        self.assertEqual(stragglers[0], stragglers[1])
        for told, first, second in zip(stragglers[0], *computing):
            self.assertAlmostEqual(told, max(first, second) / (first + second) * 2, places=6)

    def assert_shows_the_actions_of_stages(self, events, letters, chunks):
        # The letter of an action, its micro-batch, and its chunk if there are several; 4 micro-batches and 4 steps.
        suffixes = [f" chunk {chunk}" for chunk in range(chunks)] if chunks > 1 else [""]
        whole = sorted(f"{letter}{micro_batch}{suffix}" for letter in letters for micro_batch in range(4) for suffix in suffixes)
        processes = {event["args"]["name"] for event in events if event["name"] == "process_name"}
        self.assertEqual(processes, {"rank 0, stage 0", "rank 1, stage 1"})
        rows = {event["args"]["name"]: event["tid"] for event in events if event["name"] == "thread_name"}
        self.assertEqual(set(rows), {"steps", "actions", "computing", "exchange"})
        for rank in (0, 1):
            spans = [event for event in events if event["ph"] == "X" and event["pid"] == rank]
            actions = [event for event in spans if event["tid"] == rows["actions"]]
            for earlier, later in zip(actions, actions[1:]):
                self.assertLessEqual(earlier["ts"] + earlier["dur"], later["ts"] + 1)  # microseconds are rounded
            self.assertEqual(len({event["cname"] for event in actions}), len(letters))
            for number, step in enumerate(self.steps(events, rank), 1):
                own = [event for event in actions if event["args"]["step"] == number]
                self.assertEqual(sorted(event["name"] for event in own), whole)
                self.assertTrue(0 <= step["args"]["bubble"] < 1, step)
                for event in own:
                    self.assertLessEqual(step["ts"], event["ts"])
                    self.assertLessEqual(event["ts"] + event["dur"], step["ts"] + step["dur"])
                    self.assertEqual(event["name"].split()[0][1:], str(event["args"]["micro_batch"]))

    def assert_bubbles_are_of_both_ranks(self, events):
        for number in range(1, 5):
            spans = [event for event in events if event["ph"] == "X"]
            actions = [event for event in spans if event["args"].get("step") == number and "micro_batch" in event["args"]]
            whole = max(event["ts"] + event["dur"] for event in actions) - min(event["ts"] for event in actions)
            for rank in (0, 1):
                own = [event for event in actions if event["pid"] == rank]
                computed = sum(event["dur"] - event["args"]["exchanged_ms"] * 1e3 for event in own)
                step = next(event for event in spans if event["pid"] == rank and event["name"] == f"step {number}")
                self.assertAlmostEqual(step["args"]["bubble"], 1 - computed / whole, delta=20 / whole)  # of rounded microseconds

    def assert_report_has_lanes(self, report, steps):
        page = report.read_text()
        for rank in (0, 1):
            found = re.findall(rf"<title>rank {rank}, step (\d+): computing [\d.]+ ms, collectives [\d.]+ ms, \d+ % of it overlapped</title>", page)
            self.assertEqual(found, [str(step) for step in steps])
        self.assertRegex(page, rf"Steps {steps[0]} to {steps[-1]}; straggler score <b>[12]\.\d\d</b>: rank [01] computed \d+ % longer")
        self.assertIn("<h2>Straggler score</h2>", page)

    def test_processes_show_what_they_did(self):
        report, log = self.folder / "report.html", self.folder / "log.jsonl"
        more = ("--report", report, "--log", log)
        self.assert_shows_both_ranks(self.traced("launch", "-n", "2", "--", PROGRAM, more=more))
        self.assert_report_has_lanes(report, [1, 2, 3])  # the last step's times are unknown: no step began after it
        self.assertEqual(["straggler" in line for line in step_lines(log)], [False, True, True, True, False])

    def test_threads_show_what_they_did(self):
        report, log = self.folder / "report.html", self.folder / "log.jsonl"
        self.assert_shows_both_ranks(self.traced(more=("--ranks", "2", "--report", report, "--log", log)))
        self.assert_report_has_lanes(report, [1, 2, 3, 4])
        self.assertEqual(["straggler" in line for line in step_lines(log)], [True, True, True, True, False])

    def assert_report_has_the_actions_of_stages(self, report):
        page = report.read_text()
        self.assertRegex(page, r"<h2>Pipeline</h2><p class=\"note\">Step 4 by 1f1b; bubble <b>\d+\.\d %</b>")
        self.assertIn("if all parts take the same time, <b>20.0 %</b>", page)  # (p - 1) / (m + p - 1)
        for stage in (0, 1):
            self.assertRegex(page, rf"<title>rank {stage}, stage {stage}: 8 actions, bubble \d+ %</title>")

    def test_stages_show_their_actions(self):
        report = self.folder / "report.html"
        stages = ("--stages", "2", "--micro-batches", "4", "--layers", "4")
        self.assert_shows_the_actions_of_stages(self.traced(more=(*stages, "--report", report)), "FB", 1)
        self.assert_report_has_the_actions_of_stages(report)
        events = self.traced("launch", "-n", "2", "--", PROGRAM, more=(*stages, "--report", report))
        self.assert_shows_the_actions_of_stages(events, "FB", 1)
        self.assert_report_has_the_actions_of_stages(report)
        self.assert_bubbles_are_of_both_ranks(events)
        self.assert_shows_the_actions_of_stages(self.traced(more=(*stages, "--schedule", "zb-v")), "FIW", 2)

    def test_one_rank_shows_its_steps(self):
        events = self.traced()
        self.steps(events, 0)
        self.assertEqual(len(events), 6)  # four steps, the rank's name, the end

    def machine(self):
        path = self.folder / "machine.json"
        self.assertEqual(run("bench", "--calibrate", path, "--quick", "--seconds", 0).returncode, 0)
        return path

    def assert_shows_the_predicted_step(self, *launcher, ranks, stages=1, more=()):
        """Each rank's measured lane and, as the next process, its predicted one, which begins with the median step."""
        report = self.folder / "report.html"
        events = self.traced(*launcher, more=("--machine", self.machine(), "--report", report, *more))
        names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
        order = {event["pid"]: event["args"]["sort_index"] for event in events if event["name"] == "process_sort_index"}
        stage = (lambda rank: f", stage {rank * stages // ranks}") if stages > 1 else (lambda rank: "")
        lanes = [names[pid] for pid in sorted(order, key=order.get)]
        self.assertEqual(lanes[0::2], [f"rank {rank}{stage(rank)}" for rank in range(ranks)])
        step = re.fullmatch(r"rank 0.*, predicted, from step ([1-4]) \(median\)", lanes[1])[1]
        self.assertEqual(lanes[1::2], [f"rank {rank}{stage(rank)}, predicted, from step {step} (median)" for rank in range(ranks)])
        self.assertEqual(len(names), 2 * ranks)
        measured = self.steps(events, 0)
        middle = sorted(event["dur"] for event in measured)[2]
        self.assertLessEqual(abs(measured[int(step) - 1]["dur"] - middle), 1)  # microseconds are rounded
        page = report.read_text()
        predicted_ms = float(re.search(r"a step, predicted</[^>]+>(?:<[^>]+>)*([\d.e+-]+) ms", page)[1])
        rows = {event["args"]["name"]: event["tid"] for event in events if event["name"] == "thread_name" and event["pid"] == ranks}
        self.assertEqual(set(rows), {"steps", "computing", "exchange", "actions"})
        for rank in range(ranks):
            spans = [event for event in events if event["ph"] == "X" and event["pid"] == ranks + rank]
            [whole] = [event for event in spans if event["tid"] == rows["steps"]]
            self.assertEqual(whole["name"], f"step {step}")
            self.assertAlmostEqual(whole["dur"] * 1e-3, predicted_ms, delta=1e-3 + 1e-3 * predicted_ms)
            if rank == 0 or launcher:
                self.assertEqual(whole["ts"], self.steps(events, rank)[int(step) - 1]["ts"])
            for event in spans:
                self.assertLessEqual(whole["ts"], event["ts"])
                self.assertLessEqual(event["ts"] + event["dur"], whole["ts"] + whole["dur"] + 1)  # microseconds are rounded
            for row in ("computing", "actions"):
                own = [event for event in spans if event["tid"] == rows[row]]
                self.assertTrue(own)
                for earlier, later in zip(own, own[1:]):
                    self.assertLessEqual(earlier["ts"] + earlier["dur"], later["ts"] + 1)
            self.assertAlmostEqual(sum(event["dur"] for event in spans if event["tid"] == rows["computing"]) * 1e-3, whole["args"]["computing_ms"], delta=0.05)
            # The same events as in a measured step, under the same names.
            before = [event for event in events if event["ph"] == "X" and event["pid"] == rank]
            if stages > 1:
                actions = [event["name"] for event in before if event["tid"] == rows["actions"] and event["args"].get("step") == int(step)]
                self.assertEqual(sorted(event["name"] for event in spans if event["tid"] == rows["actions"]), sorted(actions))
            else:
                exchanges = {event["name"] for event in before if event["tid"] == rows["exchange"]}
                predicted = {event["name"] for event in spans if event["tid"] == rows["exchange"]}
                self.assertLessEqual(predicted, exchanges)
                self.assertEqual(bool(predicted), ranks > 1)
            differences = whole["args"]["largest differences"]
            self.assertEqual(len(differences), 0 if ranks == 1 else min(3, ranks + 2 * stages if stages > 1 else ranks))
            for what, said in differences.items():
                self.assertRegex(said, r"^[\d.e+-]+ ms predicted, [\d.e+-]+ ms measured$")
                self.assertRegex(page, rf"{re.escape(what)}</[^>]+>(<[^>]+>)*{re.escape(said)}")

    def test_the_predicted_step_is_below_the_measured_one(self):
        self.assert_shows_the_predicted_step(ranks=1)
        self.assert_shows_the_predicted_step(ranks=2, more=("--ranks", "2"))
        self.assert_shows_the_predicted_step(ranks=2, stages=2, more=("--stages", "2", "--micro-batches", "4", "--layers", "4"))

    def test_ranks_of_a_launch_are_predicted_together(self):
        launch = ("launch", "-n", "2", "--", PROGRAM)
        self.assert_shows_the_predicted_step(*launch, ranks=2)
        self.assert_shows_the_predicted_step(*launch, ranks=2, stages=2, more=("--stages", "2", "--micro-batches", "4", "--layers", "4"))

    def test_rates_of_another_machine_are_refused_before_the_first_step(self):
        path = self.machine()
        path.write_text(json.dumps(json.loads(path.read_text()) | {"library": "0.0.1"}))
        done = run(*TRAIN, "--data", self.text, "--machine", path, "--trace", self.folder / "trace.json")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"machine: its rates were measured .*--calibrate")
        self.assertNotIn("step", done.stdout.split("steps  ")[1].split("\n", 1)[1])

    def test_a_file_that_cannot_be_made_is_refused(self):
        done = run(*TRAIN, "--data", self.text, "--trace", self.folder / "nowhere" / "trace.json")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"--trace.*nowhere")
        done = run(*TRAIN, "--data", self.text, "--trace", self.folder / "a", "--log", self.folder / "a")
        self.assertEqual(done.returncode, 2)
        self.assertIn("name two files", done.stderr)


if __name__ == "__main__":
    unittest.main()
