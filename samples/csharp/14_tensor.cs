// Tensor ranks: two ranks, here threads of this process, share each layer: the first of two is split by columns, the second by rows. Results
// are those of one rank within rounding, with the same bits at one degree. Prints what 14_tensor.c prints.
// Build: mcs -r:ScaleTrain.dll 14_tensor.cs
using System;
using System.Globalization;
using System.Linq;
using ScaleTrain;

static class TensorRanks {
  const int Rows = 64, Width = 32, Steps = 100;

  static Value Linear(Graph graph, string name, Value x, long inputs, long outputs) {
    using (graph.Scope(name)) {
      Value weight = graph.Parameter("weight", new[] { inputs, outputs }, Init.Xavier);
      return Ops.Matmul(x, weight) + graph.Parameter("bias", new[] { outputs }, Init.Zeros);
    }
  }

  struct Outcome {
    public double Loss;
    public string State;  // a digest of all weights and moments
  }

  static Outcome Train(Graph graph, string name, int tensor, int dataRanks, Batch batch) {
    using (var model = new Model(graph, seed: 1))
    using (var recipe = new Recipe { Batch = Rows / 2, MicroBatches = 2, Lr = 0.01, WeightDecay = 0, Tensor = tensor,
                                     Ranks = tensor * dataRanks, Zero = 1 })
    using (var trainer = new Trainer(model, recipe)) {
      StepReport report = default(StepReport);
      for (int step = 0; step < Steps; ++step) report = trainer.Step(batch);
      Console.WriteLine($"{name,-22}  step {report.Step}  loss {report.Loss:F3}");
      return new Outcome { Loss = report.Loss, State = trainer.Digest() };
    }
  }

  static int Main(string[] arguments) {
    string device = arguments.Contains("--device") ? arguments.Last() : "cpu";  // --device NAME at the end
    CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
    float[] x = Enumerable.Range(0, Rows).Select(i => -3.0f + 6.0f * i / (Rows - 1)).ToArray();
    float[] y = x.Select(at => (float)Math.Sin(at)).ToArray();
    var batch = new Batch { { "x", x, Rows, 1 }, { "y", y, Rows, 1 } };

    using (var context = new Context(new ContextOptions { Device = device }))
    using (var graph = new Graph(context)) {
      Value hidden = Ops.Gelu(Linear(graph, "first", graph.Input("x", DType.F32, Graph.Batch, 1), 1, Width));
      foreach (string name in new[] { "second", "third" }) hidden = Ops.Gelu(Linear(graph, name, hidden, Width, Width));
      Value prediction = Linear(graph, "fourth", hidden, Width, 1);
      graph.Loss(Ops.Mse(prediction, graph.Input("y", DType.F32, Graph.Batch, 1)));

      Outcome one = Train(graph, "one rank", 1, 1, batch), shared = Train(graph, "two tensor ranks", 2, 1, batch);
      Outcome beside = Train(graph, "and two data ranks", 2, 2, batch);
      bool alike = shared.State == beside.State && Math.Abs(shared.Loss - one.Loss) < 1e-3;
      Console.WriteLine(alike ? "the same bits at one degree, within rounding of one rank" : "they differ");
      return alike ? 0 : 1;
    }
  }
}
