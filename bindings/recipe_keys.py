"""Generates RecipeKeys.java (typed methods), RecipeKeys.cs (typed properties) or recipe_settings.py (a typed dict) from the library's table of
recipe keys (runtime/recipe/recipe.def). Run it after a row has changed. With --check it writes nothing and fails if the file is out of date.

recipe_keys.py [--check] LIBSCALETRAIN.so RecipeKeys.java|RecipeKeys.cs|recipe_settings.py
"""

import ctypes
import json
import pathlib
import sys
import textwrap
from typing import Any

JAVA_HEAD = """package org.scaletrain;

import java.util.List;
import java.util.Map;

/**
 * A typed setter and getter for each recipe key. A key that is not set has its default.
 *
 * <p>Generated from {@code runtime/recipe/recipe.def} by {@code bindings/recipe_keys.py}: edit the row, not this file.
 */
public abstract class RecipeKeys extends Handle {
  RecipeKeys() {}

  /** Sets any key. */
  public abstract Recipe set(String key, Object value);

  /** The value of any key. */
  public abstract Object get(String key);

  private Number number(String key) {
    return of(key, Number.class);
  }

  private boolean yes(String key) {
    return of(key, Boolean.class);
  }

  private String text(String key) {
    return of(key, String.class);
  }

  @SuppressWarnings("unchecked")
  private List<Map<String, Object>> list(String key) {
    return of(key, List.class);
  }

  private <T> T of(String key, Class<T> type) {
    Object value = get(key);
    if (type.isInstance(value)) return type.cast(value);
    throw new WrongState("Recipe: " + key + " is " + Json.text(value) + ", which has another type; use get(\\"" + key + "\\")");
  }
"""
JAVA_SETTER = """
  {comment}
  public Recipe {method}({type} {argument}) {{
    return set("{key}", {argument});
  }}
"""
JAVA_GETTER = """
  /** The value set by {{@link #{method}({link})}}. */
  public {type} {method}() {{
    return {reader}("{key}"){suffix};
  }}
"""
JAVA_TYPES = {"real": "double", "integer": "long", "boolean": "boolean", "text": "String", "list": "List<Map<String, Object>>"}
JAVA_VALUES = {"double": "number", "long": "number", "boolean": "yes", "String": "text", "List<Map<String, Object>>": "list"}

CSHARP_HEAD = """namespace ScaleTrain {

// Generated from runtime/recipe/recipe.def by bindings/recipe_keys.py: edit the row, not this file.
public sealed partial class Recipe {
"""
CSHARP_PROPERTY = """  /// <summary>{help}</summary>
  /// <remarks>Default: {usual}.{allowed}</remarks>
  public {type} {name} {{
    get {{ return {get}; }}
    set {{ {set}; }}
  }}
"""
CSHARP_TYPES = {
    "boolean": ("bool", 'Flag("{0}")', 'Set("{0}", value)'),
    "integer": ("long", 'Integer("{0}")', 'Set("{0}", value)'),
    "real": ("double", 'Real("{0}")', 'Set("{0}", value)'),
    "text": ("string", 'Word("{0}")', 'Set("{0}", value)'),
    "list": ("string", 'Value("{0}")', 'native.set("{0}", Given(value, "{0}"))'),  # as JSON
}

PYTHON_HEAD = '''"""The keys of a recipe, for type checkers.

Generated from runtime/recipe/recipe.def by bindings/recipe_keys.py: edit the row, not this file.
"""

from typing import Any, Literal, Mapping, Sequence, TypedDict


class RecipeSettings(TypedDict, total=False):
    """The keys that a dict for a Recipe may have. A missing key has its default."""

'''
PYTHON_WORDS = {"batch": 'int | Literal["auto"]'}  # keys that also take a word
PYTHON_TYPES = {"boolean": "bool", "integer": "int", "real": "float", "text": "str", "list": "Sequence[Mapping[str, Any]]"}


def keys_of(library: str) -> list[dict[str, Any]]:
    text = ctypes.c_char_p()
    if ctypes.CDLL(library).st_recipe_keys(ctypes.byref(text)) != 0 or text.value is None:
        sys.exit(f"{library}: st_recipe_keys failed")
    return json.loads(text.value)  # type: ignore[no-any-return]


def escaped(text: object) -> str:
    """Escaped for XML and HTML documentation."""
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def pascal(key: str) -> str:
    return "".join(word.capitalize() for word in key.split("_"))


def comment_of(text: str) -> str:
    lines = textwrap.wrap(text, 130, break_long_words=False, break_on_hyphens=False)
    return f"/** {lines[0]} */" if len(lines) == 1 else "\n".join(["/**", *(f"   * {line}" for line in lines), "   */"])


def in_java(key: dict[str, Any]) -> str:
    kind = JAVA_TYPES[key["type"]]
    allowed = f" Allowed: {key['allowed']}." if key["allowed"] else ""
    text = escaped(f"{key['help'][0].upper()}{key['help'][1:]}.{allowed} Default: {json.dumps(key['default'])}.")
    text = text.replace("@", "&#64;").replace("*/", "*&#47;")
    method = pascal(key["name"])
    names = {"key": key["name"], "method": method[0].lower() + method[1:], "type": kind}
    suffix = {"double": ".doubleValue()", "long": ".longValue()"}.get(kind, "")
    return JAVA_SETTER.format(comment=comment_of(text), argument="value", **names) + JAVA_GETTER.format(
        link=kind.split("<")[0], reader=JAVA_VALUES[kind], suffix=suffix, **names
    )


def in_csharp(key: dict[str, Any]) -> str:
    kind, get, set_ = CSHARP_TYPES[key["type"]]
    return CSHARP_PROPERTY.format(
        help=escaped(key["help"]) + ("; JSON text" if key["type"] == "list" else ""),
        usual=escaped(json.dumps(key["default"])),
        allowed=f" Allowed: {escaped(key['allowed'])}." if key["allowed"] else "",
        type=kind,
        name=pascal(key["name"]),
        get=get.format(key["name"]),
        set=set_.format(key["name"]),
    )


def in_python(key: dict[str, Any]) -> str:
    allowed = f" Allowed: {key['allowed']}." if key["allowed"] else ""
    lines = textwrap.wrap(f"{key['help'][0].upper()}{key['help'][1:]}.{allowed} Default: {json.dumps(key['default'])}.", 130)
    return "\n".join([f"    {key['name']}: {PYTHON_WORDS.get(key['name'], PYTHON_TYPES[key['type']])}", *(f"    # {line}" for line in lines)]) + "\n"


def main(*arguments: str) -> None:
    check = arguments[0] == "--check"
    library, path = arguments[-2:]
    file = pathlib.Path(path)
    if file.suffix == ".java":
        made = JAVA_HEAD + "".join(map(in_java, keys_of(library))) + "}\n"
    elif file.suffix == ".py":
        made = PYTHON_HEAD + "".join(map(in_python, keys_of(library)))
    else:
        made = CSHARP_HEAD + "\n".join(map(in_csharp, keys_of(library))) + "}\n\n}\n"
    if not check:
        file.write_text(made)
    elif file.read_text() != made:
        sys.exit(f"{path} is out of date; run {sys.argv[0]} {library} {path}")


if __name__ == "__main__":
    main(*sys.argv[1:])
