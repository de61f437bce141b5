"""A plan of a run on a machine that is not here, from Python."""

import pytest

import scaletrain as st
from nets import sine, trainer

SIZES = {"layers": 2, "width": 64, "heads": 4, "context": 32, "vocabulary": 300}


def gpt():
    with st.Context(late_parameters=True) as context:
        return st.Model.builtin(context, "gpt", **SIZES)


def test_a_plan_outlives_model_recipe_and_context():
    model, recipe = gpt(), st.Recipe(ranks=4, batch=4, zero=1)
    with st.Plan(model, recipe, machine="v100-32g", rank=3, simulate=True) as plan:
        before = plan.json
        model.close()
        recipe.close()
        assert plan.json == before and before["rank"] == 3 and before["position"]["data"] == 3
        assert plan.fits and plan.step_seconds == before["step_seconds"] > 0 and plan.fixes == []
        assert plan.recipe["zero"] == 1 and plan.recipe["ranks"] == 4
        assert str(plan).startswith("rank 3 of 4 (4 data x 1 tensor x 1 stages) on v100-32g\n")
        assert "Plan of rank 3 of 4" in plan.report() and plan.trace()[0]["name"] == "process_name"
    with pytest.raises(st.InvalidHandle):
        str(plan)


def test_a_trainer_forecasts_its_step(context):
    made = trainer(context)
    assert made.forecast()["measured_seconds"] is None
    made.step(sine())
    after = made.forecast()
    assert after["measured_seconds"] > 0 and after["step_seconds"] > 0 and not after["measured"]
    with pytest.raises(st.InvalidArgument, match="machine: version is missing"):
        made.forecast({})


def test_a_fix_makes_the_plan_fit():
    model, machine = gpt(), {"machine": "h200", "device_memory": 2**30 + 3_000_000}
    first = st.Plan(model, {"ranks": 4, "batch": 4}, **machine)
    fix = next(fix for fix in first.fixes if fix["fits"])
    assert not first.fits and fix["device_total"] <= machine["device_memory"]
    recipe = first.recipe
    for key, value in fix["recipe"].items():
        recipe[key] = value
    second = st.Plan(model, recipe, **machine)
    assert second.fits and second.json["memory"]["device_total"] == fix["device_total"]
    assert st.Plan(model, first.recipe, **machine, auto=True).fits


def test_what_is_wrong_is_named():
    model = gpt()
    with pytest.raises(st.InvalidArgument, match=r'Plan: options: option "machin" is unknown; did you mean machine\?'):
        st.Plan(model, {"batch": 4}, machin="h200")
    with pytest.raises(st.InvalidArgument, match='machine "h100" is unknown; did you mean h100-sxm'):
        st.Plan(model, machine="h100")
    with pytest.raises(TypeError, match="a Model is required"):
        st.Plan(st.Recipe(), machine="h200")
