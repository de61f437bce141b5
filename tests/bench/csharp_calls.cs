// The cost of a call from C#, in microseconds: medians over rounds of the mean of many calls, and the middle half of the rounds.
// The target csharp_tests builds it as build/release/csharp_tests/csharp_calls.exe.
//   SCALETRAIN_NATIVE=build/release/csharp mono build/release/csharp_tests/csharp_calls.exe [ROUNDS]
//   SCALETRAIN_NATIVE=build/release/csharp .venv/lib/python3.11/site-packages/dnv/net/runtime/.net/dotnet exec
//     --runtimeconfig build/release/csharp_tests/net8.runtimeconfig.json build/release/csharp_tests/csharp_calls.exe [ROUNDS]
using System;
using System.Diagnostics;
using System.Globalization;
using System.Linq;
using ScaleTrain;

static class CsharpCalls {
  const int Calls = 20000;

  static void Time(string name, int rounds, Action call) {
    for (int i = 0; i < 2 * Calls; ++i) call();  // until the runtime has fully optimised it
    var means = new double[rounds];
    for (int round = 0; round < rounds; ++round) {
      long begin = Stopwatch.GetTimestamp();
      for (int i = 0; i < Calls; ++i) call();
      means[round] = (Stopwatch.GetTimestamp() - begin) * 1e6 / Stopwatch.Frequency / Calls;
    }
    double[] sorted = means.OrderBy(mean => mean).ToArray();
    Console.WriteLine($"{name,-36} {sorted[rounds / 2],7:F3}  ({sorted[rounds / 4]:F3} to {sorted[rounds * 3 / 4]:F3})");
  }

  static void Main(string[] arguments) {
    CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
    int rounds = arguments.Length > 0 ? int.Parse(arguments[0]) : 15;
    using (var context = new Context(new ContextOptions { Threads = 1 })) {
      var scaler = new LossScaler(context);
      var schedule = new Schedule(new { schedule = "cosine", lr_steps = 1000 });
      View a = new float[4, 4], c = new float[4, 4];
      var gemm = new Gemm(context, 4, 4, 4);
      var optimizer = new Optimizer(context, new Batch { { "w", new float[4, 4] } }, new { optimizer = "sgd" });
      var predictor = new Predictor(Model.Builtin(context, "mlp", 0, new { hidden = new[] { 8 } }));
      Batch inputs = new Batch { { "x", new float[1, 1] } }, outputs = new Batch { { "prediction", new float[1, 1] } };
      double sum = 0;
      Time("LossScaler.Scale", rounds, () => sum += scaler.Scale);
      Time("Schedule.At(7)", rounds, () => sum += schedule.At(7));
      Time("Gemm.Run of 4 cubed, three arrays", rounds, () => gemm.Run(a, a, c));
      Time("Optimizer.Step of 16 numbers", rounds, () => optimizer.Step(a));
      Time("Predictor.Run of one row", rounds, () => predictor.Run(inputs, outputs));
    }
  }
}
