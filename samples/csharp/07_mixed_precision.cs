// Trains the same small GPT in fp32, bf16 and fp16, from the same weights on the same text, and shows the losses side by side. In fp16 the
// loss is scaled. The scale starts too high, so the first steps are skipped until it fits. Prints the same numbers as 07_mixed_precision.c.
// Usage: 07_mixed_precision.exe TEXT [--device NAME]
// Build: mcs -r:ScaleTrain.dll 07_mixed_precision.cs
using System;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using ScaleTrain;

static class MixedPrecision {
  const int Steps = 60, Every = 10;

  sealed class Run {
    internal readonly string Precision;
    internal readonly List<double> Losses = new List<double>();
    internal double Validation, Scale;
    internal int Skipped;

    internal Run(string precision) { Precision = precision; }

    internal void Train(Context context, Data data, Data heldOut) {
      using (Model model = Model.Builtin(context, "gpt", 1, new { layers = 2, width = 64, heads = 2, context = 32 }))
      using (var recipe = new Recipe { Precision = Precision, Batch = 8, Lr = 0.001 }) {
        if (Precision == "fp16") recipe.LossScaleInitial = 4194304;
        using (var trainer = new Trainer(model, recipe, data)) {  // weights, moments and gradients are fp32 in all three runs
          trainer.Stepped += Record;
          trainer.Run(Steps);
          Validation = trainer.Evaluate(heldOut).Loss;
        }
      }
    }

    void Record(StepReport report) {
      if (report.Step % Every == 0) Losses.Add(report.Loss);
      if (report.Skipped) ++Skipped;
      Scale = report.LossScale;
    }
  }

  static void Print(object name, IEnumerable<string> cells) { Console.WriteLine($"{name,-12} " + string.Join(" ", cells.Select(cell => cell.PadLeft(8)))); }

  static int Main(string[] arguments) {
    string device = arguments.Contains("--device") ? arguments.Last() : "cpu";  // --device NAME at the end
    CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
    if (arguments.Length < 1) {
      Console.Error.WriteLine("usage: 07_mixed_precision.exe TEXT [--device NAME]");
      return 2;
    }
    Run[] runs = new[] { "fp32", "bf16", "fp16" }.Select(precision => new Run(precision)).ToArray();
    using (var context = new Context(new ContextOptions { Device = device }))
    using (Data data = Data.Files(context, arguments[0], new { context = 32 })) {
      data.Split(0.1, 0, out Data training, out Data heldOut);
      using (training)
      using (heldOut)
        foreach (Run run in runs) run.Train(context, training, heldOut);
    }

    Print("step", runs.Select(run => run.Precision));
    for (int k = 0; k < Steps / Every; ++k) Print((k + 1) * Every, runs.Select(run => run.Losses[k].ToString("F4")));
    Print("validation", runs.Select(run => run.Validation.ToString("F4")));
    Print("loss scale", runs.Select(run => run.Scale.ToString("F0")));
    Print("skipped", runs.Select(run => run.Skipped.ToString()));
    // Guessing costs 5.5 nats per byte. The steps that fp16 skips at the start cost it a little.
    bool close = runs.All(run => run.Validation < 4.5 && Math.Abs(run.Validation / runs[0].Validation - 1) < 0.05);
    return close && runs[0].Skipped == 0 && runs[1].Skipped == 0 && runs[2].Skipped > 0 ? 0 : 1;
  }
}
