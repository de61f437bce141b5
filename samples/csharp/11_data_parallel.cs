// Data parallelism: the micro-batches of a step are shared among ranks, here threads of this process. One recipe key sets their number;
// losses and weights are bitwise equal for any number of ranks. Prints the same numbers as 11_data_parallel.c.
// Build: mcs -r:ScaleTrain.dll 11_data_parallel.cs
using System;
using System.Globalization;
using System.Linq;
using ScaleTrain;

static class DataParallel {
  const int Rows = 64, Width = 32, Steps = 100;

  static Value Linear(Graph graph, string name, Value x, long inputs, long outputs) {
    using (graph.Scope(name)) {
      Value weight = graph.Parameter("weight", new[] { inputs, outputs }, Init.Xavier);
      return Ops.Matmul(x, weight) + graph.Parameter("bias", new[] { outputs }, Init.Zeros);
    }
  }

  // Trains on this number of ranks. Returns a digest of all weights and moments.
  static string Train(Graph graph, int ranks, Batch batch) {
    using (var model = new Model(graph, seed: 1))
    using (var recipe = new Recipe { Batch = 8, MicroBatches = 8, Lr = 0.01, WeightDecay = 0, Ranks = ranks })
    using (var trainer = new Trainer(model, recipe)) {
      StepReport report = default(StepReport);
      for (int step = 0; step < Steps; ++step) report = trainer.Step(batch);  // the batch has the rows of all ranks
      Console.WriteLine($"{ranks} rank{(ranks == 1 ? " " : "s")}  step {report.Step}  loss {report.Loss:F5}");
      return trainer.Digest();
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
      Value prediction = Linear(graph, "second", hidden, Width, 1);
      graph.Loss(Ops.Mse(prediction, graph.Input("y", DType.F32, Graph.Batch, 1)));

      string first = Train(graph, 1, batch);
      bool alike = new[] { 2, 3, 8 }.Select(ranks => Train(graph, ranks, batch)).ToList().All(state => state == first);
      Console.WriteLine(alike ? "all have the same bits" : "they differ");
      return alike ? 0 : 1;
    }
  }
}
