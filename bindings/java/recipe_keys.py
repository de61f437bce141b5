"""Writes RecipeKeys.java, the typed methods of Java's Recipe, from the library's table of keys (runtime/train/recipe.def): run it after a row
has changed. With --check it writes nothing and fails when the file is not what the table makes.

recipe_keys.py [--check] LIBSCALETRAIN.so RecipeKeys.java
"""

import ctypes
import json
import pathlib
import sys
import textwrap
from typing import Any

HEAD = """package org.scaletrain;

import java.util.List;
import java.util.Map;

/**
 * A typed method for each key of a recipe: one sets it, one tells it. What is not set has its default.
 *
 * <p>Made from {@code runtime/train/recipe.def} by {@code bindings/java/recipe_keys.py}: change the row, not this file.
 */
public abstract class RecipeKeys extends Handle {
  RecipeKeys() {}

  /** Any key. */
  public abstract Recipe set(String key, Object value);

  /** Any key. */
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
    throw new WrongState("Recipe: " + key + " is " + Json.text(value) + " now; get(\\"" + key + "\\") tells any value");
  }
"""
SETTER = """
  {comment}
  public Recipe {method}({type} {argument}) {{
    return set("{key}", {argument});
  }}
"""
GETTER = """
  /** Of {{@link #{method}({link})}}. */
  public {type} {method}() {{
    return {reader}("{key}"){suffix};
  }}
"""
TYPES = {"real": "double", "integer": "long", "boolean": "boolean", "text": "String", "list": "List<Map<String, Object>>"}
VALUES = {"double": "number", "long": "number", "boolean": "yes", "String": "text", "List<Map<String, Object>>": "list"}


def keys_of(library: str) -> list[dict[str, Any]]:
    text = ctypes.c_char_p()
    if ctypes.CDLL(library).st_recipe_keys(ctypes.byref(text)) != 0 or text.value is None:
        sys.exit(f"{library}: st_recipe_keys failed")
    return json.loads(text.value)  # type: ignore[no-any-return]


def camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(word.capitalize() for word in rest)


def commented(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("@", "&#64;").replace("*/", "*&#47;")


def comment_of(text: str) -> str:
    lines = textwrap.wrap(text, 130, break_long_words=False, break_on_hyphens=False)
    return f"/** {lines[0]} */" if len(lines) == 1 else "\n".join(["/**", *(f"   * {line}" for line in lines), "   */"])


def methods(key: dict[str, Any]) -> str:
    kind = TYPES[key["type"]]
    allowed = f" Allowed: {key['allowed']}." if key["allowed"] else ""
    text = commented(f"{key['help'][0].upper()}{key['help'][1:]}.{allowed} Default: {json.dumps(key['default'])}.")
    names = {"key": key["name"], "method": camel(key["name"]), "type": kind}
    suffix = {"double": ".doubleValue()", "long": ".longValue()"}.get(kind, "")
    return SETTER.format(comment=comment_of(text), argument="value", **names) + GETTER.format(
        link=kind.split("<")[0], reader=VALUES[kind], suffix=suffix, **names
    )


def main(*arguments: str) -> None:
    check = arguments[0] == "--check"
    library, path = arguments[-2:]
    made = HEAD + "".join(methods(key) for key in keys_of(library)) + "}\n"
    file = pathlib.Path(path)
    if not check:
        file.write_text(made)
    elif file.read_text() != made:
        sys.exit(f"{path} is not what the table of keys makes; run {sys.argv[0]} {library} {path}")


if __name__ == "__main__":
    main(*sys.argv[1:])
