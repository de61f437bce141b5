// A custom model with two inputs and one output, fitted to arrays of this program, which the library reads in place.
// Prints the same numbers as 03_own_graph.c.
// Build: mcs -r:ScaleTrain.dll 03_own_graph.cs
using System.Linq;
using System;
using System.Globalization;
using ScaleTrain;

static class OwnGraph {
  const int Side = 32, Steps = 1000;

  // Uses layers where there are some, else ops. An invalid call throws.
  static void Describe(Graph graph) {
    Value point = graph.Input("point", DType.F32, Graph.Batch, 2);
    Value wanted = graph.Input("height", DType.F32, Graph.Batch, 1);
    Value hidden = Ops.Tanh(graph.Linear("hidden", point, 32, new { init = "kaiming", scale = 2 }));
    Value found = graph.Linear("out", Ops.Concat(new[] { hidden, point }, axis: -1), 1);
    graph.Output("found", found);
    graph.Loss(Ops.Mse(found, wanted));
  }

  // A hill on a slope.
  static float Height(float x, float y) { return (float)Math.Exp(-2 * (x * x + y * y)) + 0.5f * x; }

  // The library takes two-dimensional C# arrays directly.
  static Batch Landscape() {
    var points = new float[Side * Side, 2];
    var heights = new float[Side * Side, 1];
    for (int i = 0; i < Side * Side; ++i) {
      points[i, 0] = -1 + 2 * (float)(i % Side) / (Side - 1);
      points[i, 1] = -1 + 2 * (float)(i / Side) / (Side - 1);
      heights[i, 0] = Height(points[i, 0], points[i, 1]);
    }
    return new Batch { { "point", points }, { "height", heights } };
  }

  static int Main(string[] arguments) {
    string device = arguments.Contains("--device") ? arguments.Last() : "cpu";  // --device NAME at the end
    CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
    using (var context = new Context(new ContextOptions { Device = device }))
    using (var graph = new Graph(context)) {
      Describe(graph);
      using (var model = new Model(graph, seed: 1))
      using (Data data = Data.Arrays(context, Landscape()))  // not copied: pinned until the data is gone
      using (var recipe = new Recipe { Batch = 64, Lr = 0.01, WeightDecay = 0 })
      using (var trainer = new Trainer(model, recipe, data)) {
        double loss = double.NaN;
        trainer.Stepped += report => {
          loss = report.Loss;
          if (report.Step % 100 == 0) Console.WriteLine($"step {report.Step,3}  loss {report.Loss:F5}");
        };
        trainer.Run(Steps);
        Console.WriteLine(loss < 0.001 ? "it knows the hill" : "it does not know the hill");
        return loss < 0.001 ? 0 : 1;
      }
    }
  }
}
