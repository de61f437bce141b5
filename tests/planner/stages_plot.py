"""Draws docs/guides/plan_stages.svg: a deep network (152 blocks) on 1, 2, 4 and 8 stages, by `scaletrain plan --simulate`.

Usage: stages_plot.py SCALETRAIN [FILE.svg]     prints the table; takes a minute
"""

import json
import pathlib
import subprocess
import sys

MODEL = ["--layers", "152", "--width", "1024", "--heads", "16", "--context", "512", "--vocabulary", "8192", "--precision", "bf16"]
STAGES = [1, 2, 4, 8]
MICRO_BATCHES = 16
SCHEDULES = {"1f1b": "#2563eb", "interleaved": "#0d9468", "zb-v": "#7c4ddb"}


def planned(program, stages, schedule):
    words = ["plan", *MODEL, "--machine", "a100-80g", "--world", stages, "--stages", stages, "--schedule", schedule, "--batch", 4, "--accumulate", MICRO_BATCHES, "--simulate", "--json"]
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, check=True)
    plan = json.loads(done.stdout)
    return plan["simulation"]["step_seconds"], plan["simulation"]["idle"]


def svg(rows):
    """Speed-up against stages, each point with its bubble."""
    x = {stages: 70 + 150 * i for i, stages in enumerate(STAGES)}
    y = lambda speed: 250 - 28 * speed
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 300" font-family="sans-serif" font-size="12">', '<rect width="640" height="300" fill="#fff"/>']
    for speed in (1, 2, 4, 8):
        out.append(f'<path d="M60 {y(speed):g}H600" stroke="#ddd"/><text x="50" y="{y(speed) + 4:g}" text-anchor="end" fill="#555">{speed}x</text>')
    out += [f'<text x="{x[stages]}" y="278" text-anchor="middle" fill="#555">{stages} stage{"s" if stages > 1 else ""}</text>' for stages in STAGES]
    for i, (schedule, color) in enumerate(SCHEDULES.items()):
        points = [(x[stages], y(speed)) for stages, speed, _ in rows[schedule]]
        out.append(f'<path d="M{"L".join(f"{a} {b:g}" for a, b in points)}" fill="none" stroke="{color}" stroke-width="2"/>')
        out.append(f'<text x="80" y="{36 + 16 * i}" fill="{color}">{schedule}</text>')
        for (a, b), (stages, speed, idle) in zip(points, rows[schedule]):
            out.append(f'<circle cx="{a}" cy="{b:g}" r="3.5" fill="{color}"><title>{schedule}, {stages} stages: {speed:.2f} times as fast, ranks idle {100 * idle:.1f} %</title></circle>')
        stages, speed, idle = rows[schedule][-1]
        out.append(f'<text x="{x[stages] + 8}" y="{y(speed) + 4 + 8 * (1 - i):g}" fill="{color}">{speed:.1f}x, idle {100 * idle:.0f} %</text>')
    return "\n".join([*out, '<text x="320" y="296" text-anchor="middle" fill="#555">speed of one stage, by number of stages; 152 blocks, 16 micro-batches</text>', "</svg>", ""])


def main():
    program = sys.argv[1]
    one, _ = planned(program, 1, "1f1b")
    rows = {schedule: [] for schedule in SCHEDULES}
    for schedule in SCHEDULES:
        for stages in STAGES:
            seconds, idle = planned(program, stages, schedule if stages > 1 else "1f1b")
            rows[schedule].append((stages, one / seconds, idle))
            print(f"{schedule:12} {stages} stages: {one / seconds:5.2f} times as fast, ranks idle {100 * idle:5.1f} %", flush=True)
    if len(sys.argv) > 2:
        pathlib.Path(sys.argv[2]).write_text(svg(rows))


main()
