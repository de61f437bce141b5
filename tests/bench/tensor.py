"""Tensor ranks of a trainer: time of a step on two cores, beside one rank and two data ranks.

    tests/bench/tensor.py [ROUNDS]     the table of README.md: a thread each

Needs a release build. The runs of a round are interleaved; a ratio is that of medians over all rounds.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/release/capi/scaletrain"
MODELS = {
    "256 wide, 4 x 64 tokens": "--layers 4 --width 256 --heads 4 --context 64 --batch 4",
    "512 wide, 4 x 128 tokens": "--layers 4 --width 512 --heads 8 --context 128 --batch 4",
    "1024 wide, 4 x 128 tokens": "--layers 2 --width 1024 --heads 16 --context 128 --batch 4",
}
RUNS = {"one rank": [], "two data ranks": ["--ranks", "2"], "two tensor ranks": ["--tensor", "2"]}
WARM, STEPS = 2, 6


def train(folder, model, options):
    """Milliseconds of each step that counts."""
    log = folder / "log.jsonl"
    command = [PROGRAM, "train", "--model", "gpt", *model.split(), "--data", ROOT / "README.md", "--micro-batches", "2", "--validation", "0"]
    subprocess.run([*command, "--steps", str(WARM + STEPS), "--threads", "1", "--log", log, *options], check=True, capture_output=True)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    log.unlink()
    return [line["milliseconds"] for line in lines if "milliseconds" in line][WARM:]


def main(rounds):
    with tempfile.TemporaryDirectory() as folder:
        for name, model in MODELS.items():
            times = {run: [] for run in RUNS}
            for _ in range(rounds):
                for run, options in RUNS.items():
                    times[run] += train(pathlib.Path(folder), model, options)
            for run, took in times.items():
                of_two = statistics.median(times["two data ranks"]) / statistics.median(took)
                print(f"| {name} | {run} | {statistics.median(took):.1f} ({min(took):.1f} to {max(took):.1f}) | {of_two:.2f} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
