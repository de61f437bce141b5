// A custom loss, computed by the program between Forward and Backward: missing stock costs nine times as much as surplus stock, so the net
// learns the order that is enough on 90 % of the days. Prints the same numbers as 05_own_loss.c.
// Build: mcs -r:ScaleTrain.dll 05_own_loss.cs
using System.Linq;
using System;
using System.Globalization;
using ScaleTrain;

static class OwnLoss {
  const int Rows = 64;
  static readonly float[] X = new float[Rows], Sold = new float[Rows], Gradient = new float[Rows];
  static uint state = 1;

  // A random number between 0 and 1.
  static float Uniform() {
    state = unchecked(state * 1664525 + 1013904223);
    return (float)(state >> 8) / (1 << 24);
  }

  // Draws x; the sales are 2 x + 1, plus a random number between 0 and 1.
  static void SomeDays() {
    for (int i = 0; i < Rows; ++i) {
      X[i] = Uniform();
      Sold[i] = 2 * X[i] + 1 + Uniform();
    }
  }

  // The mean cost of the orders; also writes its gradient by each order to Gradient.
  static double CostOf(Span<float> order) {
    double sum = 0;
    for (int i = 0; i < Rows; ++i) {
      double missing = (double)Sold[i] - order[i];
      sum += missing > 0 ? 0.9 * missing : -0.1 * missing;
      Gradient[i] = (missing > 0 ? -0.9f : 0.1f) / Rows;  // the library does not divide by the number of rows
    }
    return sum / Rows;
  }

  static int Main(string[] arguments) {
    string device = arguments.Contains("--device") ? arguments.Last() : "cpu";  // --device NAME at the end
    CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
    var batch = new Batch { { "x", X, Rows, 1 } };  // no "y", since the graph's own loss is not used
    var byOrder = new Batch { { "prediction", Gradient, Rows, 1 } };
    double first = 0, cost = 0;
    int enough = 0, days = 0;
    using (var context = new Context(new ContextOptions { Device = device }))
    using (Model model = Model.Builtin(context, "mlp", 1, new { inputs = 1, hidden = new[] { 32 }, outputs = 1 }))
    using (var recipe = new Recipe { Batch = 64, Lr = 0.01, Warmup = 0, WeightDecay = 0 })
    using (var trainer = new Trainer(model, recipe)) {
      for (int step = 1; step <= 1000; ++step) {
        SomeDays();
        Span<float> order = trainer.Forward(batch)["prediction"].As<float>();
        cost = CostOf(order);
        for (int i = 0; i < Rows && step > 900; ++i, ++days)
          if (order[i] >= Sold[i]) ++enough;
        trainer.Backward(byOrder);
        trainer.Apply();
        if (step == 1) first = cost;
        if (step == 1 || step % 200 == 0) Console.WriteLine($"step {step,4}  cost {cost:F3}");
      }
    }
    double share = (double)enough / days;
    Console.WriteLine($"orders were enough on {100 * share:F0} % of the last days");
    return cost > 0.1 * first || share < 0.85 || share > 0.95 ? 1 : 0;  // the optimal orders cost 0.045 and are enough on 90 % of days
  }
}
