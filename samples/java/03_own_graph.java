// A custom model with two inputs and one output, fitted to arrays of this program, which the library reads in place.
// Prints the same numbers as 03_own_graph.c. Run: java -cp scaletrain.jar 03_own_graph.java

import java.nio.FloatBuffer;
import java.util.List;
import java.util.Map;
import org.scaletrain.Array;
import org.scaletrain.Batch;
import org.scaletrain.Context;
import org.scaletrain.ContextOptions;
import org.scaletrain.DType;
import org.scaletrain.Data;
import org.scaletrain.Graph;
import org.scaletrain.Model;
import org.scaletrain.Ops;
import org.scaletrain.Recipe;
import org.scaletrain.Trainer;
import org.scaletrain.Value;

class OwnGraph {
  static final int SIDE = 32, ROWS = SIDE * SIDE, STEPS = 1000;
  static double loss = Double.NaN;

  /** A hill on a slope. */
  static float height(float x, float y) {
    return (float) Math.exp(-2 * (x * x + y * y)) + 0.5f * x;
  }

  /** Uses layers where there are some, else ops. An invalid call throws. */
  static void describe(Graph graph) {
    Value point = graph.input("point", Graph.BATCH, 2), wanted = graph.input("height", Graph.BATCH, 1);
    Value hidden = Ops.tanh(graph.linear("hidden", point, 32, Map.of("init", "kaiming", "scale", 2)));
    Value found = graph.linear("out", Ops.concat(List.of(hidden, point), -1), 1);
    graph.output("found", found);
    graph.loss(Ops.mse(found, wanted));
  }

  static Batch someHill() {
    Array point = Array.allocate(DType.F32, ROWS, 2), height = Array.allocate(DType.F32, ROWS, 1);
    FloatBuffer points = point.floats(), heights = height.floats();
    for (int i = 0; i < ROWS; ++i) {
      float x = -1 + 2 * (float) (i % SIDE) / (SIDE - 1), y = -1 + 2 * (float) (i / SIDE) / (SIDE - 1);
      points.put(x).put(y);
      heights.put(height(x, y));
    }
    return Batch.of("point", point, "height", height);
  }

  static boolean run(String device) {
    try (Context context = new Context(new ContextOptions().device(device)); Graph graph = new Graph(context)) {
      describe(graph);
      Recipe recipe = new Recipe().batch(64).lr(0.01).weightDecay(0);
      try (Model model = new Model(graph, 1);
          Data data = Data.arrays(context, someHill());  // not copied: the data keeps the arrays
          Trainer trainer = new Trainer(model, recipe, data)) {
        trainer.run(STEPS, report -> {
          if (report.step() % 100 == 0) System.out.printf("step %3d  loss %.5f%n", report.step(), report.loss());
          loss = report.loss();
        });
      }
    }
    System.out.println(loss < 0.001 ? "it knows the hill" : "it does not know the hill");
    return loss < 0.001;
  }

  public static void main(String[] arguments) {
    String device = List.of(arguments).contains("--device") ? arguments[arguments.length - 1] : "cpu";  // --device NAME at the end
    System.exit(run(device) ? 0 : 1);
  }
}
