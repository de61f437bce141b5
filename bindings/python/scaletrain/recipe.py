"""A recipe: the training settings."""

from __future__ import annotations

import json
from typing import Any, Mapping, Unpack

from .handle import Handle, native, of_c, plain_json
from .recipe_settings import RecipeSettings


class Recipe(Handle):
    """The training settings: Recipe(batch=64, lr=0.01), or a dict, or JSON text. A dict or text may also be a DeepSpeed ds_config.

    RecipeSettings has the types of all keys; Recipe.keys() also has their ranges and help.
    """

    __slots__ = ()

    @of_c("st_recipe_create")
    def __init__(self, settings: Mapping[str, Any] | str | None = None, /, **keys: Unpack[RecipeSettings]) -> None:
        if isinstance(settings, str):
            self._native = native.Recipe(settings)
            for key, value in keys.items():
                self[key] = value
        elif settings is None or isinstance(settings, Mapping):
            self._native = native.Recipe(plain_json({**(settings or {}), **keys}))
        else:
            raise TypeError(f"a recipe must be a Recipe, a dict or JSON text, got {settings!r:.60} ({type(settings).__name__})")

    @of_c("st_recipe_set")
    def __setitem__(self, key: str, value: Any) -> None:
        self._native.set(key, plain_json(value))

    @of_c("st_recipe_get")
    def __getitem__(self, key: str) -> Any:
        return json.loads(self._native.value(key))

    def _about(self) -> str:
        usual = {key["name"]: key["default"] for key in self.keys()}
        return json.dumps({key: value for key, value in self.to_dict().items() if value != usual.get(key)})

    @of_c("st_recipe_json")
    def to_dict(self) -> dict[str, Any]:
        """All keys; keys that were not set have their defaults."""
        return json.loads(self._native.json())  # type: ignore[no-any-return]

    @staticmethod
    @of_c("st_recipe_keys")
    def keys() -> list[dict[str, Any]]:
        """The name, type, default, allowed range and help of each key."""
        return json.loads(native.Recipe.keys())  # type: ignore[no-any-return]


def recipe_of(recipe: Recipe | RecipeSettings | str) -> Recipe:
    return recipe if isinstance(recipe, Recipe) else Recipe(recipe)
