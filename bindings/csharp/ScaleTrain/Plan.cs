using System.Globalization;
using System.Text.RegularExpressions;

namespace ScaleTrain {

/// <summary>A plan: what one rank of a run would hold, send and wait for, on a machine that need not be there. Nothing is trained and no rank is
/// started.</summary>
/// <remarks>The model's parameters are not read: create the model in a context with <see cref="ContextOptions.LateParameters"/> if it does not
/// fit in this process's memory. Model and recipe may be disposed or changed afterwards.</remarks>
public sealed class Plan : Handle {
  private readonly Native.Plan native;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>Options are JSON text, a dictionary or an anonymous object: <c>new { machine = "a100-80g", rank = 3 }</c>. <c>plan.h</c> documents
  /// them and their defaults.</summary>
  [OfC("st_plan_create")]
  public Plan(Model model, Recipe recipe, object options = null) {
    native = new Native.Plan(Given(model, "model").native, Given(recipe, "recipe").native, ScaleTrain.Json.OfOptions(options));
    Safe.KeepWhat(model.Safe);
  }

  /// <summary>All of the plan as JSON: memory, wire_bytes, collectives, bubble, step_seconds, fits, fixes and more.</summary>
  [OfC("st_plan_json")]
  public string Json() {
    lock (Safe) return native.json();
  }

  /// <summary>The plan for people.</summary>
  [OfC("st_plan_text")]
  public string Text() {
    lock (Safe) return native.text();
  }

  /// <summary>One HTML page: memory over a step by kind; with simulate, the timeline of the stages and what ranks wait for.</summary>
  [OfC("st_plan_report")]
  public string Report() {
    lock (Safe) return native.report();
  }

  /// <summary>The simulated step for chrome://tracing and Perfetto, as JSON. Throws <see cref="WrongStateException"/> without simulate.</summary>
  [OfC("st_plan_trace")]
  public string Trace() {
    lock (Safe) return native.trace();
  }

  /// <summary>The recipe that is planned, as a new object: with auto, the one found.</summary>
  [OfC("st_plan_recipe")]
  public Recipe Recipe() {
    lock (Safe) return new Recipe(native.recipe());
  }

  /// <summary>Whether the memory of the ranks of every stage fits on their devices.</summary>
  public bool Fits { get { return Value("fits") == "true"; } }

  /// <summary>The predicted time of a step.</summary>
  public double StepSeconds { get { return double.Parse(Value("step_seconds"), CultureInfo.InvariantCulture); } }

  // The plan's own values come before those of its fixes.
  private string Value(string key) { return Regex.Match(Json(), "\"" + key + "\":([^,}]*)").Groups[1].Value; }
}

}
