package org.scaletrain;

import java.util.List;
import java.util.Map;
import org.scaletrain.internal.NativeLibrary;

/**
 * The training settings: {@code new Recipe().batch(64).lr(0.01)}. {@link RecipeKeys} has a typed method for each key; {@link #set} and
 * {@link #get} take any key. {@link #keys} lists all keys with their ranges and help.
 */
public final class Recipe extends RecipeKeys {
  final org.scaletrain.internal.Recipe raw;

  /** All defaults. */
  public Recipe() {
    NativeLibrary.require();
    raw = new org.scaletrain.internal.Recipe();
  }

  /** Reads JSON text; a DeepSpeed ds_config is accepted too. An unknown key is refused, and the error names the nearest one. */
  @OfC("st_recipe_create")
  public Recipe(String json) {
    NativeLibrary.require();
    raw = new org.scaletrain.internal.Recipe(json);
  }

  /** Takes keys and values. */
  public Recipe(Map<String, ?> settings) {
    this(Json.text(settings));
  }

  /** Sets any key. The value is a number, a string, a Boolean, a list or a map. */
  @Override
  @OfC("st_recipe_set")
  public Recipe set(String key, Object value) {
    raw.set(key, Json.text(value));
    return this;
  }

  /** The value of a key: Long, Double, String, Boolean or a list. */
  @Override
  @OfC("st_recipe_get")
  public Object get(String key) {
    return Json.parse(raw.value(key));
  }

  /** All keys as JSON; keys that were not set have their defaults. */
  @OfC("st_recipe_json")
  public String json() {
    return raw.json();
  }

  /** The {@code name}, {@code type}, {@code default}, {@code allowed} range and {@code help} of each key. */
  @SuppressWarnings("unchecked")
  @OfC("st_recipe_keys")
  public static List<Map<String, Object>> keys() {
    NativeLibrary.require();
    return (List<Map<String, Object>>) Json.parse(org.scaletrain.internal.Recipe.keys());
  }

  @Override
  @OfC("st_recipe_destroy")
  public void close() {
    raw.close();
  }
}
