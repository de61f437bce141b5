"""Pipeline stages of a trainer: time and bubble of a step by schedule and number of micro-batches, beside one rank and two data ranks.

    tests/bench/stages.py [ROUNDS]             the table of README.md: two stages on two cores, a thread each
    tests/bench/stages.py --picture FILE.svg   the last step under 1f1b and zb-v, as the report draws it

Needs a release build. The runs of a round are interleaved. Bubble: the share of a step's actions in which the ranks computed nothing, as
`train --trace` has it.
"""

import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/release/capi/scaletrain"
MODEL = {
    "256 wide": "--layers 8 --width 256 --heads 4 --context 64",
    "384 wide": "--layers 8 --width 384 --heads 6 --context 128",
}
SCHEDULES = ("gpipe", "1f1b", "interleaved", "zb-h1", "zb-v")
WARM = 2  # steps that do not count


def closed_form(schedule, m):
    """The bubble of two stages whose actions take equal times."""
    whole = {"interleaved": 3 * m + 1.5, "zb-h1": 2 * (m + 1) + max(1, m - 1), "zb-v": 3 * m + 0.5}.get(schedule, 3 * (m + 1))
    return 1 - 3 * m / whole


def train(folder, model, m, steps, *options):
    """Milliseconds of each step, its bubbles, and the state's digest."""
    log, trace = folder / "log.jsonl", folder / "trace.json"
    command = [PROGRAM, "train", "--model", "gpt", *model.split(), "--data", ROOT / "README.md", "--batch", "2", "--micro-batches", str(m)]
    command += ["--steps", str(steps), "--validation", "0", "--threads", "1", "--log", log, "--trace", trace, *options]
    subprocess.run(command, check=True, capture_output=True)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    log.unlink()
    events = json.loads(trace.read_text())
    bubbles = [event["args"]["bubble"] for event in events if "bubble" in event.get("args", {})]
    return [line["milliseconds"] for line in lines if "milliseconds" in line][WARM:], bubbles[WARM:], lines[-1]["state"]


def table(folder, rounds):
    for name, model in MODEL.items():
        for m in (2, 4, 8, 16):
            runs = {"one rank": [], "two data ranks": ["--ranks", "2"]}
            runs |= {schedule: ["--stages", "2", "--schedule", schedule] for schedule in SCHEDULES}
            times, bubbles, states = {}, {}, set()
            for _ in range(rounds):
                for run, options in runs.items():
                    took, idle, state = train(folder, model, m, WARM + 6, *options)
                    times.setdefault(run, []).extend(took)
                    bubbles.setdefault(run, []).extend(idle)
                    states.add(state)
            assert len(states) == 1, "the topologies ended with different states"
            for run, took in times.items():
                of_two = statistics.median(times["two data ranks"]) / statistics.median(took)
                idle = [100 * share for share in bubbles[run]]
                share = f"{statistics.median(idle):.1f} ({min(idle):.1f} to {max(idle):.1f}), form {100 * closed_form(run, m):.1f}" if idle else ""
                print(f"| {name} | {m} | {run} | {statistics.median(took):.1f} ({min(took):.1f} to {max(took):.1f}) | {of_two:.2f} | {share} |")
            sys.stdout.flush()


def picture(folder, path):
    """The report's lanes of the last step under two schedules, one above the other, in one file."""
    parts = []
    for place, schedule in enumerate(("1f1b", "zb-v")):
        page = folder / "report.html"
        train(folder, MODEL["256 wide"], 8, 6, "--stages", "2", "--schedule", schedule, "--report", page)
        lanes = next(svg for svg in re.findall(r"<svg.*?</svg>", page.read_text(), re.S) if "stage 0" in svg)
        inner = re.sub(r"^<svg[^>]*>|</svg>$", "", lanes)
        parts.append(f'<g transform="translate(0 {24 + 92 * place})"><text x="110" y="-8">{schedule}</text>{inner}</g>')
    style = "text{font:13px sans-serif;fill:#444}.number text{font-size:11px;fill:#fff;text-anchor:middle}"
    style += ".forward{fill:#2f6fb2}.backward{fill:#2c8a57}.weight{fill:#8457a8}rect{fill:#fff}"
    key = '<g transform="translate(110 202)">'
    for at, (kind, words) in enumerate({"forward": "forward", "backward": "backward (zb-v: of the input)", "weight": "gradients of weights"}.items()):
        key += f'<path class="{kind}" d="M{230 * at} 0h12v12h-12z"/><text x="{230 * at + 18}" y="11">{words}</text>'
    body = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1080 224"><style>{style}</style><rect width="1080" height="224"/>'
    pathlib.Path(path).write_text(body + "".join(parts) + key + "</g></svg>\n")


with tempfile.TemporaryDirectory() as name:
    if sys.argv[1:2] == ["--picture"]:
        picture(pathlib.Path(name), sys.argv[2])
    else:
        table(pathlib.Path(name), int(sys.argv[1]) if len(sys.argv) > 1 else 2)
