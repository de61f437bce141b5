package org.scaletrain;

import java.util.Map;

/**
 * A plan: what one rank of a run would hold, send and wait for, on a machine that need not be there. Nothing is trained and no rank is
 * started. The model's parameters are not read: create the model in a context with {@link ContextOptions#lateParameters} if it does not fit
 * in this process's memory. Model and recipe may be closed or changed afterwards.
 */
public final class Plan extends Handle {
  private final org.scaletrain.internal.Plan raw;

  /** Rank 0 on this machine. */
  public Plan(Model model, Recipe recipe) {
    this(model, recipe, Map.of());
  }

  /** With options, for example {@code Map.of("machine", "a100-80g", "rank", 3)}. {@code plan.h} documents them and their defaults. */
  @OfC("st_plan_create")
  public Plan(Model model, Recipe recipe, Map<String, ?> options) {
    raw = new org.scaletrain.internal.Plan(given(model, "Plan").raw, given(recipe, "Plan").raw, Json.options(options));
    raw.keeps = model.raw.keeps;
  }

  /** All of the plan as JSON: memory, wire_bytes, collectives, bubble, step_seconds, fits, fixes and more. {@link Json#parse} reads it. */
  @OfC("st_plan_json")
  public String json() {
    return raw.json();
  }

  /** The plan for people. */
  @OfC("st_plan_text")
  public String text() {
    return raw.text();
  }

  /** One HTML page: memory over a step by kind; with simulate, the timeline of the stages and what ranks wait for. */
  @OfC("st_plan_report")
  public String report() {
    return raw.report();
  }

  /** The simulated step for chrome://tracing and Perfetto, as JSON. Throws {@link WrongState} without simulate. */
  @OfC("st_plan_trace")
  public String trace() {
    return raw.trace();
  }

  /** The recipe that is planned, as a new object: with auto, the one found. */
  @OfC("st_plan_recipe")
  public Recipe recipe() {
    return new Recipe(raw.recipe());
  }

  /** Whether the memory of the ranks of every stage fits on their devices. */
  public boolean fits() {
    return (Boolean) value("fits");
  }

  /** The predicted time of a step. */
  public double stepSeconds() {
    return ((Number) value("step_seconds")).doubleValue();
  }

  private Object value(String key) {
    return ((Map<?, ?>) Json.parse(json())).get(key);
  }

  @Override
  @OfC("st_plan_destroy")
  public void close() {
    raw.close();
  }
}
