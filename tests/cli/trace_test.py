"""`scaletrain train --trace`: what every rank did when, as a list of spans of time."""

import json
import unittest

from command_line import PROGRAM, TINY, CommandLineTest, run

TRAIN = ("train", *TINY, "--steps", "4")


class Trace(CommandLineTest):
    def traced(self, *launcher):
        path = self.folder / "trace.json"
        done = run(*launcher, *TRAIN, "--data", self.text, "--trace", path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(path.read_text())

    def steps(self, events, rank):
        found = [event for event in events if event["ph"] == "X" and event["pid"] == rank and event["name"].startswith("step ")]
        self.assertEqual([event["name"] for event in found], ["step 1", "step 2", "step 3", "step 4"])
        for earlier, later in zip(found, found[1:]):
            self.assertLessEqual(earlier["ts"] + earlier["dur"], later["ts"])
        return found

    def test_ranks_show_their_steps_and_what_they_exchange_in_them(self):
        events = self.traced("launch", "-n", "2", "--", PROGRAM)
        self.assertEqual({event["args"]["name"] for event in events if event["name"] == "process_name"}, {"rank 0", "rank 1"})
        rows = {event["args"]["name"]: event["tid"] for event in events if event["name"] == "thread_name"}
        self.assertEqual(set(rows), {"steps", "exchange"})
        sequences = []
        for rank in (0, 1):
            exchanges = [event for event in events if event["pid"] == rank and "sequence" in event.get("args", {})]
            self.assertEqual({event["tid"] for event in exchanges}, {rows["exchange"]})
            sequences.append([(event["args"]["sequence"], event["name"]) for event in exchanges])
            for step in self.steps(events, rank):
                self.assertEqual(step["tid"], rows["steps"])
                inside = [event for event in exchanges if step["ts"] <= event["ts"] and event["ts"] + event["dur"] <= step["ts"] + step["dur"]]
                self.assertTrue(any(event["name"].startswith("reduce_scatter gradient.") for event in inside), step)
                self.assertLessEqual(sum(event["dur"] for event in inside), step["dur"])
        # The collectives are those of both; what followed the last step is in neither.
        self.assertEqual(sequences[0], sequences[1])
        self.assertEqual(sequences[0], sorted(set(sequences[0])))

    def test_one_rank_shows_its_steps(self):
        events = self.traced()
        self.steps(events, 0)
        self.assertEqual(len(events), 6)  # four steps, the rank's name, the end

    def test_a_file_that_cannot_be_made_is_refused(self):
        done = run(*TRAIN, "--data", self.text, "--trace", self.folder / "nowhere" / "trace.json")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"--trace.*nowhere")
        done = run(*TRAIN, "--data", self.text, "--trace", self.folder / "a", "--log", self.folder / "a")
        self.assertEqual(done.returncode, 2)
        self.assertIn("name two files", done.stderr)


if __name__ == "__main__":
    unittest.main()
