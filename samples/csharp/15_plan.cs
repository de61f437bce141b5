// Plans before anything runs: a GPT of 10 B parameters on 8 ranks of a machine that is not here. The first recipe does not fit; the plan
// lists changes of the recipe with their prices. The first one that fits is applied and planned. Then the library searches by itself.
// Prints what 15_plan.c prints.
// Build: mcs -r:ScaleTrain.dll 15_plan.cs
using System.Linq;
using System;
using System.Globalization;
using System.Text.RegularExpressions;
using ScaleTrain;

static class PlannedRun {
  /// <summary>The number of a key; the plan's own keys come before those of its fixes.</summary>
  static double Number(string json, string key) {
    return double.Parse(Regex.Match(json, "\"" + key + "\":([^,}]*)").Groups[1].Value, CultureInfo.InvariantCulture);
  }

  static void Print(string name, Plan plan) {
    string json = plan.Json();
    double total = Number(json, "device_total") / 1e9, room = Number(json, "device_memory") / 1e9;
    string verdict = plan.Fits ? "fits" : $"does not fit, {total - room:F1} GB too much";
    Console.WriteLine($"{name,-14} {total,6:F1} GB of {room:F1}, {plan.StepSeconds:F2} s a step: {verdict}");
  }

  static int Main(string[] arguments) {
    string device = arguments.Contains("--device") ? arguments.Last() : "cpu";  // --device NAME at the end
    CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
    // A plan does not read the parameters, so they are never made.
    using (var context = new Context(new ContextOptions { Device = device, LateParameters = true }))
    using (Model model = Model.Builtin(context, "gpt", 1, new { layers = 12, width = 8192, heads = 64, context = 1024, vocabulary = 50304 }))
    using (var recipe = new Recipe { Ranks = 8, Batch = 16, Precision = "fp16", Optimizer = "adam" })
    using (var first = new Plan(model, recipe, new { machine = "a100-80g" })) {
      string json = first.Json(), book = json.Substring(json.IndexOf("\"textbook\":"));
      Console.WriteLine($"{Number(book, "parameters") / 1e9:F1} B parameters; textbook: {Number(book, "bytes_per_parameter"):F0} bytes each, " +
                        $"{Number(book, "data_parallel") / 1e9:F1} GB a rank, {Number(book, "zero_3") / 1e9:F1} GB with ZeRO-3");
      Print("first recipe", first);

      Match fix = Regex.Match(json, "{\"text\":\"([^\"]*)\",\"recipe\":{([^}]*)},\"fits\":true");
      if (!fix.Success) return 1;
      Console.WriteLine(fix.Groups[1].Value);
      using (Recipe changed = first.Recipe()) {
        foreach (Match one in Regex.Matches(fix.Groups[2].Value, "\"([^\"]*)\":\"?([^,\"]*)")) {
          string key = one.Groups[1].Value, value = one.Groups[2].Value;
          changed.Set(key, long.TryParse(value, out long number) ? (object)number : value);
        }
        using (var second = new Plan(model, changed, new { machine = "a100-80g" }))
        using (var best = new Plan(model, recipe, new { machine = "a100-80g", auto = true })) {
          Print("with the fix", second);
          Print("searched", best);
          Console.WriteLine(Regex.Match(best.Json(), "\"found\":\\[{\"recipe\":({[^}]*})").Groups[1].Value);
          return !first.Fits && second.Fits && best.Fits ? 0 : 1;
        }
      }
    }
  }
}
