// A first training step: a two-layer net, built op by op, learns y = sin x from arrays of this program. Prints the numbers of 01_first_step.c.
// Build: mcs -r:ScaleTrain.dll 01_first_step.cs
using System;
using System.Globalization;
using System.Linq;
using ScaleTrain;

static class FirstStep {
  const int Rows = 64, Width = 32, Steps = 400;

  static Value Linear(Graph graph, string name, Value x, long inputs, long outputs) {
    using (graph.Scope(name)) {
      Value weight = graph.Parameter("weight", new[] { inputs, outputs }, Init.Xavier);
      return Ops.Matmul(x, weight) + graph.Parameter("bias", new[] { outputs }, Init.Zeros);
    }
  }

  static int Main(string[] arguments) {
    string device = arguments.Contains("--device") ? arguments.Last() : "cpu";  // --device NAME at the end
    CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
    float[] x = Enumerable.Range(0, Rows).Select(i => -3.0f + 6.0f * i / (Rows - 1)).ToArray();
    float[] y = x.Select(at => (float)Math.Sin(at)).ToArray();
    var batch = new Batch { { "x", x, Rows, 1 }, { "y", y, Rows, 1 } };  // nothing is copied

    using (var context = new Context(new ContextOptions { Device = device }))
    using (var graph = new Graph(context)) {
      Value hidden = Ops.Gelu(Linear(graph, "first", graph.Input("x", DType.F32, Graph.Batch, 1), 1, Width));
      Value prediction = Linear(graph, "second", hidden, Width, 1);
      graph.Loss(Ops.Mse(prediction, graph.Input("y", DType.F32, Graph.Batch, 1)));

      using (var model = new Model(graph, seed: 1))
      using (var recipe = new Recipe { Batch = 64, Lr = 0.01, WeightDecay = 0 })
      using (var trainer = new Trainer(model, recipe)) {
        StepReport report = default(StepReport);
        for (int step = 0; step < Steps; ++step) {
          report = trainer.Step(batch);
          if (report.Step % 100 == 0 || report.Step == 1) Console.WriteLine($"step {report.Step,3}  loss {report.Loss:F5}");
        }
        bool learned = report.Loss < 0.01;
        Console.WriteLine(learned ? "it learned the sine" : "it did not learn the sine");
        return learned ? 0 : 1;
      }
    }
  }
}
