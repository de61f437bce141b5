"""Plans before anything runs: a GPT of 10 B parameters on 8 ranks of a machine that is not here. The first recipe does not fit; the plan lists
changes of the recipe with their prices. The first one that fits is applied and planned. Then the library searches by itself. Prints what
15_plan.c prints."""

import json
import sys

import scaletrain as st

DEVICE = sys.argv[-1] if "--device" in sys.argv else "cpu"  # --device NAME at the end


def print_plan(name: str, plan: st.Plan) -> None:
    all_of_it = plan.json
    total, room = all_of_it["memory"]["device_total"] / 1e9, all_of_it["device_memory"] / 1e9
    verdict = "fits" if plan.fits else f"does not fit, {total - room:.1f} GB too much"
    print(f"{name:14} {total:6.1f} GB of {room:.1f}, {plan.step_seconds:.2f} s a step: {verdict}")


def main() -> bool:
    context = st.Context(device=DEVICE, late_parameters=True)  # a plan does not read the parameters, so they are never made
    model = st.Model.builtin(context, "gpt", layers=12, width=8192, heads=64, context=1024, vocabulary=50304)
    recipe = st.Recipe(ranks=8, batch=16, precision="fp16", optimizer="adam")

    first = st.Plan(model, recipe, machine="a100-80g")
    book = first.json["textbook"]
    print(f"{book['parameters'] / 1e9:.1f} B parameters; textbook: {book['bytes_per_parameter']:.0f} bytes each, ", end="")
    print(f"{book['data_parallel'] / 1e9:.1f} GB a rank, {book['zero_3'] / 1e9:.1f} GB with ZeRO-3")
    print_plan("first recipe", first)

    fix = next(fix for fix in first.fixes if fix["fits"])
    print(fix["text"])
    fixed = first.recipe
    for key, value in fix["recipe"].items():
        fixed[key] = value
    second = st.Plan(model, fixed, machine="a100-80g")
    print_plan("with the fix", second)

    best = st.Plan(model, recipe, machine="a100-80g", auto=True)
    print_plan("searched", best)
    print(json.dumps(best.json["found"][0]["recipe"], separators=(",", ":")))
    return not first.fits and second.fits and best.fits


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
