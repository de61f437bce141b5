package org.scaletrain;

import java.util.List;
import java.util.Map;
import org.scaletrain.internal.NativeLibrary;

/**
 * How to train: {@code new Recipe().batch(64).lr(0.01)}. Each key has a typed method, in {@link RecipeKeys}; {@link #set} and {@link #get}
 * take any. {@link #keys} tells all keys with their ranges and help.
 */
public final class Recipe extends RecipeKeys {
  final org.scaletrain.internal.Recipe raw;

  /** All defaults. */
  public Recipe() {
    NativeLibrary.require();
    raw = new org.scaletrain.internal.Recipe();
  }

  /** Of JSON text, also DeepSpeed's ds_config. An unknown key is refused and the nearest named. */
  @OfC("st_recipe_create")
  public Recipe(String json) {
    NativeLibrary.require();
    raw = new org.scaletrain.internal.Recipe(json);
  }

  /** Of keys and values. */
  public Recipe(Map<String, ?> settings) {
    this(Json.text(settings));
  }

  /** Any key; the value is a number, a text, a Boolean, a list or a map. */
  @Override
  @OfC("st_recipe_set")
  public Recipe set(String key, Object value) {
    raw.set(key, Json.text(value));
    return this;
  }

  /** Long, Double, String, Boolean or a list. */
  @Override
  @OfC("st_recipe_get")
  public Object get(String key) {
    return Json.parse(raw.value(key));
  }

  /** Every key, with its default where it was not set. */
  @OfC("st_recipe_json")
  public String json() {
    return raw.json();
  }

  /** Each key's {@code name}, {@code type}, {@code default}, {@code allowed} range and {@code help}. */
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
