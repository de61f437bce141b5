"""The planner against published runs: does it fit, and how long does a step take.

    python3 against_published.py take CSV             writes published_runs.csv: the rows of CSV (the whole collection) that can be planned
    python3 against_published.py plan PROGRAM         plans all of them (minutes), writes published_runs.md and steps.svg, prints the summary
    python3 against_published.py check PROGRAM        plans the sample (seconds) and fails where the planner is further off than bounds.json allows

PROGRAM is the target planned_rows, or a file that keeps what it printed. Standard library only.
"""

import csv
import hashlib
import json
import math
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROWS = HERE / "published_runs.csv"
SHEET = {"A100": 312e12, "A800": 312e12, "H100": 989.4e12, "H200": 989.4e12, "V100": 125e12}  # FLOP/s of products, data sheets
COLUMNS = ("id gpu gpu_memory_gb gpus gpus_per_node network_gbit model_family layers hidden heads kv_heads ffn vocabulary tied_embedding sequence "
           "micro_batch global_batch precision gradient_sent gradient_kept tensor pipeline zero_stage interleave_chunks recompute recompute_detail optimizer offload "
           "step_s memory_gb out_of_memory").split()

ARENAS = "parameters gradients optimizer activations stash buckets packed".split()


def prefix(row):
    return row["id"].rsplit("-", 1)[0]


# ---- take: from the collection to what planning needs

def whole(row, name):
    return int(float(row[name])) if row[name] else 0


def generation(row):
    return next((c for c in row["model"] if c.isdigit()), "")


def vocabularies(rows):
    """Of public models, by shape: some rows of the collection give the vocabulary of a Llama that others leave out."""
    known = {}
    for row in rows:
        if row["vocabulary"] and row["model_family"] == "llama":
            known.setdefault((row["layers"], row["hidden"], row["ffn"], generation(row)), row["vocabulary"])
    return known


def step_seconds(row):
    """As published, or from the rate; from TFLOP/s only where its formula is known (arXiv 2104.04473, which counts the recomputed forward)."""
    batch, tokens = whole(row, "global_batch"), whole(row, "global_batch") * whole(row, "sequence")
    if row["step_s"]:
        return float(row["step_s"])
    for column, work in (("tokens_s", tokens), ("tokens_s_gpu", tokens / whole(row, "gpus")), ("samples_s", batch),
                         ("samples_s_gpu", batch / whole(row, "gpus"))):
        if row[column]:
            return work / float(row[column])
    if prefix(row) == "sc21" and row["tflops_gpu"]:
        layers, hidden, sequence = whole(row, "layers"), whole(row, "hidden"), whole(row, "sequence")
        flop = 96 * tokens * layers * hidden**2 * (1 + sequence / (6 * hidden) + whole(row, "vocabulary") / (16 * layers * hidden))
        return flop / (float(row["tflops_gpu"]) * 1e12 * whole(row, "gpus"))
    return None


def network_gbit(row):
    """A device's share of its node's network."""
    said = row["link_between_nodes"]
    if "1600 Gbps" in said:
        return 200
    if said.startswith("InfiniBand 100"):
        return 12.5
    if "4 links per node" in said or said.startswith("4 x 100 Gb"):
        return 50
    if said == "Omni-Path":
        return 25  # one link of 100 Gbit/s for the 4 GPUs of a node; no source says that there are more
    if said in ("400 Gbps", "800 Gbps"):
        return int(said.split()[0]) / 8
    return ""


KEEPS_FP16_GRADIENTS = ("tr11", "tr3m", "jz-v100", "dlperf-meg", "sc21", "seqpar")  # Megatron-LM, or DeepSpeed


def gradient_kept(row):
    """The 16 bits in which a device keeps gradients, and adds those of micro-batches; none: fp32, or not said. README.md has the sources."""
    if prefix(row) in KEEPS_FP16_GRADIENTS and row["precision"] == "fp16":
        return "fp16"
    return "bf16" if prefix(row) in ("internevo", "internevo-mem", "llmc") else ""


def gradient_sent(row):
    if prefix(row) == "oneflow" and row["precision"] == "fp16":
        return "fp16"
    return "bf16" if "PURE" in row["precision_detail"] else gradient_kept(row)


def keeps_checkpoints_on_host(row):
    """As the source says it; Megatron-LM with ZeRO-3 in bigscience's gpt2.md: all but experiments 12, 13, 14 and 16 (README.md)."""
    is_without = any(f"experiment {number};" in row["note"] for number in (12, 13, 14, 16))
    return "activation" in row["offload"] or row["framework"] == "Megatron-LM 1.1.5 + DeepSpeed ZeRO-3" and not is_without


def has_no_masters(row):
    """As the source says it; NeMo's nemotron4-340b-synth.yaml has the optimizer's dtype bf16, which is that of weights and moments alike."""
    said = row["precision_detail"]
    return "bf16-true" in said or "parameters, momenta bf16" in said or prefix(row) == "dgxc" and row["model"] == "Nemotron-4 340B"


def why_left_out(row):
    if row["task"] != "pretrain":
        return "fine-tuning"
    if row["precision"] in ("fp8", "nvfp4"):
        return "FP8 or NVFP4"
    if not row["precision"]:
        return "precision not said"
    if row["context"] not in ("", "1"):
        return "context parallel"
    for name, columns in (("shape", "layers hidden heads"), ("MLP's width", "ffn"), ("vocabulary", "vocabulary"), ("sequence", "sequence"),
                          ("batch", "micro_batch global_batch"), ("sizes of the mesh", "tensor pipeline gpus"), ("recomputation", "recompute")):
        if not all(row[column] for column in columns.split()):
            return name + " not said"
    if row["recompute_detail"] == "operator level":
        return "recomputes some operators"
    if "a part of" in row["recompute_detail"] or "n-th" in row["recompute_detail"]:
        return "recomputes some blocks, not said which"
    if keeps_checkpoints_on_host(row):
        return "keeps checkpoints of activations on the host"
    if has_no_masters(row):
        return "no fp32 master weights"
    if not row["out_of_memory"]:
        return "a computed figure, not a run"
    if row["gpu"].split("-")[0] not in SHEET:
        return "a GPU that is not in the catalog: " + row["gpu"]
    return ""


def completed(row, known):
    if not row["ffn"] and prefix(row) == "sc21":
        row["ffn"] = str(4 * whole(row, "hidden"))  # a GPT's, which the published number of parameters confirms
    if not row["ffn"] and prefix(row) in ("internevo", "internevo-mem") and "8/3" in row["architecture_from"]:
        row["ffn"] = str(-(-whole(row, "hidden") * 8 // (3 * 256)) * 256)
    if not row["vocabulary"] and row["model_family"] == "llama":
        row["vocabulary"] = known.get((row["layers"], row["hidden"], row["ffn"], generation(row)), "")
    if not row["global_batch"] and row["note"].startswith("micro_num 4;"):
        row["global_batch"] = str(4 * whole(row, "micro_batch") * whole(row, "data"))
    if row["gpu"] == "A100" and prefix(row) == "sc21":
        row["gpu_memory_gb"] = "80"  # as its note says
    return row


def take(path):
    rows = list(csv.DictReader(open(path, encoding="utf-8")))
    known, out, left = vocabularies(rows), [], Counter()
    for row in rows:
        why = why_left_out(completed(row, known))
        if why:
            left[why] += 1
            continue
        seconds = step_seconds(row)
        memory = float(row["memory"]) * {"GB": 1, "GiB": 1.0737, "MiB": 1.0486e-3, "MB": 1e-3}[row["memory_unit"]] if row["memory"] else None
        nodes = whole(row, "nodes")
        row |= {"step_s": f"{seconds:.6g}" if seconds else "", "memory_gb": f"{memory:.4g}" if memory else "", "network_gbit": network_gbit(row),
                "gradient_sent": gradient_sent(row), "gradient_kept": gradient_kept(row),
                "gpus_per_node": whole(row, "gpus") // nodes if nodes > 1 else ("4" if "4 GPUs" in row["link_in_node"] else "8")}
        row["gpu"] = row["gpu"].split("-")[0]
        row["optimizer"] = "distributed" if "distrib" in row["optimizer"] else ""
        out.append({name: str(row[name]).replace(",", ";") for name in COLUMNS})
    with open(ROWS, "w", encoding="utf-8") as file:
        file.write(",".join(COLUMNS) + "\n")
        for row in out:
            file.write(",".join(row[name] for name in COLUMNS) + "\n")
    (HERE / "left_out.json").write_text(json.dumps(dict(sorted(left.items(), key=lambda kind: -kind[1])), indent=1) + "\n")
    print(len(out), "rows;", sum(left.values()), "left out:", json.dumps(left))


# ---- plan: the planner's side, and how far it is off

class Pair:
    """A published row and what the planner says of it."""

    def __init__(self, row, planned):
        self.row, self.id, self.gpu = row, row["id"], row["gpu"]
        self.why_not = planned["why_not"]
        if self.why_not:
            return
        self.planned = planned
        self.memory, self.limit = float(planned["device_total"]), float(planned["device_memory"])
        self.ran_out = row["out_of_memory"] == "1"
        self.over = self.memory / self.limit - 1
        self.published = float(row["step_s"]) if row["step_s"] else None
        # Time against pace, in logarithms: nearly linear between those that were planned.
        self.points = sorted((math.log(float(name.split("_")[1])), math.log(float(value)))
                             for name, value in planned.items() if name.startswith("seconds_"))

    def seconds(self, pace=1.0):
        x = math.log(pace)
        i = max(0, min(len(self.points) - 2, sum(point[0] <= x for point in self.points) - 1))
        (x0, y0), (x1, y1) = self.points[i], self.points[i + 1]
        return math.exp(y0 + (y1 - y0) * (x - x0) / (x1 - x0))

    def error(self, pace=1.0):
        return self.seconds(pace) / self.published - 1

    def is_fitted(self):
        """Half of the rows, by their names alone."""
        return hashlib.sha256(self.id.encode()).digest()[0] % 2 == 0

    def rate(self):
        """FLOP/s of the published step, with the arithmetic that our plan has, recomputation included."""
        return float(self.planned["flop"]) / self.published


def planned_pairs(program, ids=()):
    rows = {row["id"]: row for row in csv.DictReader(open(ROWS, encoding="utf-8"))}
    if program.endswith(".csv"):
        output = Path(program).read_text(encoding="utf-8")
    else:
        output = subprocess.run([program, str(ROWS), *ids], check=True, capture_output=True, text=True).stdout
    return [Pair(rows[planned["id"]], planned) for planned in csv.DictReader(output.splitlines())]


PACES = [math.exp(step / 200) for step in range(-200, 201)]


def fitted_pace(pairs):
    """With which their median error is least: the middle of those where it is within a tenth of the least."""
    errors = [statistics.median(abs(math.log(1 + pair.error(pace))) for pair in pairs) for pace in PACES]
    near = [math.log(pace) for pace, error in zip(PACES, errors) if error <= 1.1 * min(errors)]
    return math.exp(statistics.mean(near))


def balanced_pace(pairs):
    """With which as many of them are predicted too long as too short."""
    return min(PACES, key=lambda pace: abs(statistics.median(math.log(1 + pair.error(pace)) for pair in pairs)))


def by_gpu(pairs):
    groups = {}
    for pair in pairs:
        if not pair.why_not and pair.published:
            groups.setdefault(pair.gpu, []).append(pair)
    return groups


def summary(pairs):
    lines = ["| GPU | rows fitted on | efficiency of products | other rows | median error | within 15 % | within 30 % | with a balanced fit: efficiency | median error |",
             "|---|---|---|---|---|---|---|---|---|"]
    paces, rest, balanced_rest = {}, [], []
    for gpu, group in sorted(by_gpu(pairs).items()):
        fitted, others = [p for p in group if p.is_fitted()], [p for p in group if not p.is_fitted()]
        pace, balanced = fitted_pace(fitted), balanced_pace(fitted)
        paces[gpu] = pace
        errors, balanced_errors = [abs(p.error(pace)) for p in others], [abs(p.error(balanced)) for p in others]
        rest, balanced_rest = rest + errors, balanced_rest + balanced_errors
        share = float(group[0].planned["flop_s"]) / SHEET[gpu]
        lines.append(f"| {gpu} | {len(fitted)} | {pace * share:.3f} | {len(others)} | {median(errors)} | {within(errors, 0.15)} | {within(errors, 0.3)} | "
                     f"{balanced * share:.3f} | {median(balanced_errors)} |")
    lines.append(f"| all | | | {len(rest)} | {median(rest)} | {within(rest, 0.15)} | {within(rest, 0.3)} | | {median(balanced_rest)} |")
    return lines, paces


def by_source(pairs, paces):
    groups = {}
    for pair in pairs:
        if not pair.why_not and pair.published:
            groups.setdefault((prefix(pair.row), pair.gpu), []).append(pair.error(paces[pair.gpu]))
    lines = ["| source | GPU | rows | middle error | median without sign |", "|---|---|---|---|---|"]
    for (source, gpu), errors in sorted(groups.items()):
        lines.append(f"| {source} | {gpu} | {len(errors)} | {100 * statistics.median(errors):+.0f} % | {100 * statistics.median(map(abs, errors)):.0f} % |")
    return lines


def median(errors):
    return f"{100 * statistics.median(errors):.1f} %"


def within(errors, bound):
    return f"{100 * sum(error <= bound for error in errors) / len(errors):.0f} %"


def confusion(pairs):
    count = Counter()
    for pair in pairs:
        if not pair.why_not:
            count["ran out" if pair.ran_out else "ran", "fits" if pair.over <= 0 else "near" if pair.over <= 0.03 else "refused"] += 1
    lines = ["| published | planned: fits | too much by up to 3 % | by more |", "|---|---|---|---|"]
    for published in ("ran", "ran out"):
        lines.append(f"| {published} | " + " | ".join(str(count[published, planned]) for planned in ("fits", "near", "refused")) + " |")
    return lines


def table(pairs, paces):
    lines = ["| id | GPU | GPUs | layers, width | sequence | micro, global batch | tensor, pipeline, ZeRO | recompute | memory, GB | of it | published | "
             "step, s | published | error |", "|" + "---|" * 14]
    for pair in pairs:
        row = pair.row
        shape = (f"| {row['id']} | {row['gpu']}-{row['gpu_memory_gb']} | {row['gpus']} | {row['layers']}, {row['hidden']} | {row['sequence']} | "
                 f"{row['micro_batch']}, {row['global_batch']} | {row['tensor']}, {row['pipeline']}, {row['zero_stage'] or 0} | {row['recompute']} | ")
        if pair.why_not:
            lines.append(shape + f"{pair.why_not} | | | | | |")
            continue
        ran = "ran out" if pair.ran_out else f"ran, {row['memory_gb']}" if row["memory_gb"] else "ran"
        miss = " **refused**" if not pair.ran_out and pair.over > 0.03 else " **fits**" if pair.ran_out and pair.over <= 0 else ""
        lines.append(shape + f"{pair.memory / 1e9:.1f}{miss} | {100 * (1 + pair.over):.0f} % | {ran} | "
                     + (f"{pair.seconds(paces[pair.gpu]):.3g} | {pair.published:.3g} | {100 * pair.error(paces[pair.gpu]):+.0f} % |"
                        if pair.published else " | | |"))
    return lines


def picture(pairs, paces):
    """Predicted against published seconds, both logarithmic."""
    size, margin, colors = 560, 60, {"A100": "#1b6ca8", "H100": "#2e8b57", "V100": "#c0504d", "H200": "#8064a2"}
    timed = [pair for pair in pairs if not pair.why_not and pair.published]
    values = [v for pair in timed for v in (pair.published, pair.seconds(paces[pair.gpu]))]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def place(seconds):
        return (math.log10(seconds) - low) / (high - low) * (size - 2 * margin)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" font-family="sans-serif" font-size="12">',
           f'<rect width="{size}" height="{size}" fill="white"/>']
    left, bottom, end = margin, size - margin, size - 2 * margin
    for power in range(low, high + 1):
        at = place(10.0**power)
        label = f"{10.0**power:g} s"
        out.append(f'<path d="M{left + at:.1f} {bottom}V{margin}M{left} {bottom - at:.1f}H{size - margin}" stroke="#ddd"/>'
                   f'<text x="{left + at:.1f}" y="{bottom + 18}" text-anchor="middle">{label}</text>'
                   f'<text x="{left - 6}" y="{bottom - at + 4:.1f}" text-anchor="end">{label}</text>')
    shift = math.log10(1.15) / (high - low) * end
    out.append(f'<path d="M{left} {bottom}L{left + end} {bottom - end}" stroke="#555"/>'
               f'<path d="M{left} {bottom - shift:.1f}L{left + end - shift:.1f} {bottom - end}M{left + shift:.1f} {bottom}L{left + end} {bottom - end + shift:.1f}" '
               'stroke="#999" stroke-dasharray="4 3"/>')
    for gpu in sorted(paces):  # a line each
        points = (f'<circle cx="{left + place(pair.published):.1f}" cy="{bottom - place(pair.seconds(paces[gpu])):.1f}" r="2.5"><title>{pair.id}</title></circle>'
                  for pair in timed if pair.gpu == gpu)
        out.append(f'<g fill="{colors[gpu]}" fill-opacity="0.6">{"".join(points)}</g>')
    for i, gpu in enumerate(sorted(paces)):
        out.append(f'<circle cx="{left + 14}" cy="{margin + 12 + 16 * i}" r="4" fill="{colors[gpu]}"/><text x="{left + 24}" y="{margin + 16 + 16 * i}">{gpu}</text>')
    out.append(f'<text x="{size / 2}" y="{size - 14}" text-anchor="middle">published seconds a step; dashed: 15 %</text>'
               f'<text transform="translate(14 {size / 2}) rotate(-90)" text-anchor="middle">planned seconds a step</text></svg>')
    return "\n".join(out) + "\n"


def plan(program):
    pairs = planned_pairs(program)
    lines, paces = summary(pairs)
    timed = [pair for pair in pairs if not pair.why_not and pair.published]
    (HERE / "published_runs.md").write_text(
        "# Published runs, planned\n\nWritten by `against_published.py plan`; README.md says how to read it. Bold: a miss.\n\n"
        + "\n".join(table(pairs, paces)) + "\n", encoding="utf-8")
    (HERE / "steps.svg").write_text(picture(pairs, paces), encoding="utf-8")
    print(len(pairs), "rows,", sum(not pair.why_not for pair in pairs), "planned,", len(timed), "with a step time")
    print("\n".join(lines), "\n", "\n".join(by_source(pairs, paces)), "\n", "\n".join(confusion(pairs)), "\n", sep="\n")
    print("worst, by id:")
    for pair in sorted(timed, key=lambda p: -abs(math.log(1 + p.error(paces[p.gpu]))))[:20]:
        row = pair.row
        print(f"  {pair.id} {100 * pair.error(paces[pair.gpu]):+.0f} %, {pair.rate() / 1e12:.0f} TFLOP/s published:",
              *(f"{name} {row[name]}" for name in ("gpus", "layers", "hidden", "sequence", "micro_batch", "tensor", "pipeline", "zero_stage", "offload")))
    refused = [pair for pair in pairs if not pair.why_not and not pair.ran_out and pair.over > 0.03]
    print("refused by more than 3 % though they ran:", len(refused))
    for pair in refused:
        print(f"  {pair.id} {100 * pair.over:.0f} %;", *(f"{k} {float(pair.planned[k]) / 1e9:.1f}" for k in ARENAS))
    print("fits though it ran out:", *(f"{p.id} {100 * p.over:.0f} %" for p in pairs if not p.why_not and p.ran_out and p.over <= 0))


# ---- check: a sample, against bounds that can fail

def check(program):
    bounds = json.loads((HERE / "bounds.json").read_text())
    pairs, wrong = planned_pairs(program, bounds["sample"]), []
    missing = set(bounds["sample"]) - {pair.id for pair in pairs}
    wrong += [f"{name} is not in {ROWS.name}" for name in sorted(missing)]
    for pair in pairs:
        if pair.why_not:
            wrong.append(f"{pair.id} cannot be planned: {pair.why_not}")
        elif (pair.over <= 0 if pair.ran_out else pair.over > bounds["refused_beyond"]):
            wrong.append(f"{pair.id} {'ran out of memory' if pair.ran_out else 'ran'}, but is planned with {100 * (1 + pair.over):.1f} % of it")
    for gpu, group in by_gpu(pairs).items():
        errors = [pair.error() for pair in group]
        off = statistics.median(map(abs, errors))
        print(f"{gpu}: {len(group)} rows, median error {100 * off:.1f} %,", ", ".join(f"{p.id} {100 * e:+.0f} %" for p, e in zip(group, errors)))
        if off > bounds["median_error"]:
            wrong.append(f"{gpu}: the median error is {100 * off:.1f} %, more than {100 * bounds['median_error']:.0f} %")
    print("\n".join(wrong) or "all within bounds")
    return 1 if wrong else 0


def main(words):
    if len(words) == 3 and words[1] in ("take", "plan", "check"):
        return {"take": take, "plan": plan, "check": check}[words[1]](words[2])
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv))
