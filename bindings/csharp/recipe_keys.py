"""Writes RecipeKeys.cs, the typed properties of C#'s Recipe, from the library's table of keys (runtime/train/recipe.def): run it after a row has
changed. With --check it writes nothing and fails when the file is not what the table makes.

recipe_keys.py [--check] LIBSCALETRAIN.so RecipeKeys.cs
"""

import ctypes
import json
import pathlib
import sys

HEAD = """namespace ScaleTrain {

// Made from runtime/train/recipe.def by bindings/csharp/recipe_keys.py: change the row, not this file.
public sealed partial class Recipe {
"""
PROPERTY = """  /// <summary>{help}</summary>
  /// <remarks>Usually {usual}.{allowed}</remarks>
  public {type} {name} {{
    get {{ return {get}; }}
    set {{ {set}; }}
  }}
"""
TAIL = "}\n\n}\n"
TYPES = {
    "boolean": ("bool", 'Flag("{0}")', 'Set("{0}", value)'),
    "integer": ("long", 'Integer("{0}")', 'Set("{0}", value)'),
    "real": ("double", 'Real("{0}")', 'Set("{0}", value)'),
    "text": ("string", 'Word("{0}")', 'Set("{0}", value)'),
    "list": ("string", 'Value("{0}")', 'native.set("{0}", Given(value, "{0}"))'),  # as JSON
}


def keys(library: str) -> list[dict[str, object]]:
    text = ctypes.c_char_p()
    if ctypes.CDLL(library).st_recipe_keys(ctypes.byref(text)) != 0:
        sys.exit(f"st_recipe_keys of {library} failed")
    return json.loads(text.value or b"[]")


def escaped(text: object) -> str:
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def property_of(key: dict[str, object]) -> str:
    name = str(key["name"])
    kind, get, set_ = TYPES[str(key["type"])]
    return PROPERTY.format(
        help=escaped(key["help"]) + ("; JSON text" if key["type"] == "list" else ""),
        usual=escaped(json.dumps(key["default"])),
        allowed=f" Allowed: {escaped(key['allowed'])}." if key["allowed"] else "",
        type=kind,
        name="".join(part.capitalize() for part in name.split("_")),
        get=get.format(name),
        set=set_.format(name),
    )


def main(arguments: list[str]) -> None:
    check = arguments[:1] == ["--check"]
    library, path = arguments[1:] if check else arguments
    made = HEAD + "\n".join(property_of(key) for key in keys(library)) + TAIL
    file = pathlib.Path(path)
    if not check:
        file.write_text(made)
    elif file.read_text() != made:
        sys.exit(f"{path} is not what the table of keys makes; run recipe_keys.py {library} {path}")


if __name__ == "__main__":
    main(sys.argv[1:])
