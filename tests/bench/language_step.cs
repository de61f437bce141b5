// C#'s side of language_steps.py: language_step.c describes it. The target csharp_tests builds it as build/release/csharp_tests/language_step.exe.
//   tests/bench/language_steps.py env SCALETRAIN_NATIVE=build/release/csharp mono build/release/csharp_tests/language_step.exe
//   tests/bench/language_steps.py env SCALETRAIN_NATIVE=build/release/csharp DOTNET exec --runtimeconfig build/release/csharp_tests/net8.runtimeconfig.json
//     build/release/csharp_tests/language_step.exe      where DOTNET is .venv/lib/python3.11/site-packages/dnv/net/runtime/.net/dotnet
using System;
using System.Diagnostics;
using ScaleTrain;

static class LanguageStep {
  const int Rows = 8, Width = 32;

  static void Main() {
    int[,] tokens = new int[Rows, Width], targets = new int[Rows, Width];
    for (int i = 0; i < Rows * Width; ++i) {
      tokens[i / Width, i % Width] = i * 7 % 256;
      targets[i / Width, i % Width] = (i + 1) * 7 % 256;
    }
    var batch = new Batch { { "tokens", tokens }, { "targets", targets } };
    using (var context = new Context(new ContextOptions { Threads = 1 }))
    using (Model model = Model.Builtin(context, "gpt", 1, new { layers = 2, width = 64, heads = 2, context = Width }))
    using (var recipe = new Recipe { Batch = Rows })
    using (var trainer = new Trainer(model, recipe)) {
      string line;
      while ((line = Console.ReadLine()) != null) {
        int steps = int.Parse(line);
        long begin = Stopwatch.GetTimestamp();
        for (int i = 0; i < steps; ++i) trainer.Step(batch);
        Console.WriteLine((long)((Stopwatch.GetTimestamp() - begin) * 1e9 / Stopwatch.Frequency));
      }
    }
  }
}
