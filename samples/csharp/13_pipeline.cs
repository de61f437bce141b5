// Pipeline stages: layers in two stages, here threads of this process, and micro-batches that pass through them. With one micro-batch the
// split is naive model parallelism: each stage waits half of the time. The bits are those of one stage. Prints what 13_pipeline.c prints.
// Build: mcs -r:ScaleTrain.dll 13_pipeline.cs
using System;
using System.Globalization;
using System.Linq;
using ScaleTrain;

static class Pipelined {
  const int Rows = 64, Width = 32, Steps = 100;

  // A layer in an outermost scope: a stage may begin with it.
  static Value Linear(Graph graph, string name, Value x, long inputs, long outputs) {
    using (graph.Scope(name)) {
      Value weight = graph.Parameter("weight", new[] { inputs, outputs }, Init.Xavier);
      return Ops.Matmul(x, weight) + graph.Parameter("bias", new[] { outputs }, Init.Zeros);
    }
  }

  // Returns a digest of all weights and moments.
  static string Train(Graph graph, string name, int stages, string schedule, int microBatches, Batch batch) {
    using (var model = new Model(graph, seed: 1))
    using (var recipe = new Recipe { Batch = Rows / microBatches, MicroBatches = microBatches, Lr = 0.01, WeightDecay = 0,
                                     Stages = stages, Schedule = schedule })
    using (var trainer = new Trainer(model, recipe)) {
      StepReport report = default(StepReport);
      for (int step = 0; step < Steps; ++step) report = trainer.Step(batch);  // the host passes the rows once
      Console.WriteLine($"{name,-11}  {microBatches} micro-batches  step {report.Step}  loss {report.Loss:F5}");
      return trainer.Digest();
    }
  }

  static int Main(string[] arguments) {
    string device = arguments.Contains("--device") ? arguments.Last() : "cpu";  // --device NAME at the end
    string schedule = arguments.Length > 0 && !arguments[0].StartsWith("--") ? arguments[0] : "zb-v";  // or gpipe, interleaved, zb-h1
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

      string one = Train(graph, "one stage", 1, "1f1b", 1, batch);
      bool alike = Train(graph, "naive split", 2, "1f1b", 1, batch) == one;
      one = Train(graph, "one stage", 1, "1f1b", 8, batch);
      alike &= Train(graph, "1f1b", 2, "1f1b", 8, batch) == one;
      alike &= Train(graph, schedule, 2, schedule, 8, batch) == one;
      Console.WriteLine(alike ? "the same bits with the same micro-batches" : "they differ");
      return alike ? 0 : 1;
    }
  }
}
