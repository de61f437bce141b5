"""A plan: what one rank of a run would hold, send and wait for, on a machine that need not be there."""

from __future__ import annotations

import json
from typing import Any, Mapping

from .handle import Handle, native, of_c, to_json
from .model import Model
from .recipe import Recipe, recipe_of
from .recipe_settings import RecipeSettings


class Plan(Handle):
    """Plan(model, {"zero": 1, "ranks": 8}, machine="a100-80g") plans rank 0; nothing is trained, and the machine need not be there.

    Options are rank, machine, device_memory, ranks_per_node, link, processes, late_parameters, auto, simulate, scaling, fixes, troubles,
    failures.
    str(plan) is the plan for people. The model and the recipe may be closed or changed afterwards. Create the model in a
    Context(late_parameters=True) if it does not fit in this process's memory: a plan does not read the parameters.
    """

    __slots__ = ()

    @of_c("st_plan_create")
    def __init__(self, model: Model, recipe: Recipe | RecipeSettings | str | None = None, **options: Any) -> None:
        settings = Recipe() if recipe is None else recipe_of(recipe)
        self._native = native.Plan(Model._native_of(model), Recipe._native_of(settings), to_json(options))

    @property
    @of_c("st_plan_json")
    def json(self) -> dict[str, Any]:
        """All of the plan. capi/cli/README.md has the keys."""
        return json.loads(self._native.json())  # type: ignore[no-any-return]

    @of_c("st_plan_text")
    def __str__(self) -> str:
        return self._native.text()  # type: ignore[no-any-return]

    @of_c("st_plan_report")
    def report(self) -> str:
        """One HTML page: memory over a step by kind; with simulate, the timeline of the stages and what ranks wait for."""
        return self._native.report()  # type: ignore[no-any-return]

    @of_c("st_plan_trace")
    def trace(self) -> list[dict[str, Any]]:
        """The events of the simulated step, in the JSON format of chrome://tracing and Perfetto. Needs simulate=True."""
        return json.loads(self._native.trace())  # type: ignore[no-any-return]

    @property
    @of_c("st_plan_recipe")
    def recipe(self) -> Recipe:
        """The recipe that is planned, as a new object: with auto, the one found."""
        return Recipe(self._native.recipe())

    @property
    def fits(self) -> bool:
        """Whether the memory of the ranks of every stage fits on their devices."""
        return bool(self.json["fits"])

    @property
    def fixes(self) -> list[Mapping[str, Any]]:
        """Changes of the recipe with their prices: text, recipe, fits, device_total, step_seconds, changes_results."""
        return list(self.json["fixes"])

    @property
    def step_seconds(self) -> float:
        """The predicted time of a step."""
        return float(self.json["step_seconds"])
