// A first training step: a two-layer net, built op by op, learns y = sin x from arrays of this program. Prints the same numbers as
// 01_first_step.c. Run: java -cp scaletrain.jar 01_first_step.java

import java.util.List;
import org.scaletrain.Array;
import org.scaletrain.Batch;
import org.scaletrain.Context;
import org.scaletrain.ContextOptions;
import org.scaletrain.DType;
import org.scaletrain.Graph;
import org.scaletrain.Init;
import org.scaletrain.Model;
import org.scaletrain.Ops;
import org.scaletrain.Recipe;
import org.scaletrain.StepReport;
import org.scaletrain.Trainer;
import org.scaletrain.Value;

class FirstStep {
  static final int ROWS = 64, WIDTH = 32, STEPS = 400;

  static Value linear(Graph graph, String name, Value x, long inputs, long outputs) {
    return graph.scope(name, () -> {
      Value weight = graph.parameter("weight", Init.XAVIER, 1, inputs, outputs);
      return x.matmul(weight).add(graph.parameter("bias", Init.ZEROS, 0, outputs));
    });
  }

  public static void main(String[] arguments) {
    String device = List.of(arguments).contains("--device") ? arguments[arguments.length - 1] : "cpu";  // --device NAME at the end
    Array x = Array.allocate(DType.F32, ROWS, 1), y = Array.allocate(DType.F32, ROWS, 1);
    for (int i = 0; i < ROWS; ++i) {
      float at = -3 + 6 * (float) i / (ROWS - 1);
      x.floats().put(i, at);
      y.floats().put(i, (float) Math.sin(at));
    }
    Batch batch = Batch.of("x", x, "y", y);

    try (Context context = new Context(new ContextOptions().device(device)); Graph graph = new Graph(context)) {
      Value hidden = Ops.gelu(linear(graph, "first", graph.input("x", Graph.BATCH, 1), 1, WIDTH));
      Value prediction = linear(graph, "second", hidden, WIDTH, 1);
      graph.loss(Ops.mse(prediction, graph.input("y", Graph.BATCH, 1)));

      Recipe recipe = new Recipe().batch(64).lr(0.01).weightDecay(0);
      try (Model model = new Model(graph, 1); Trainer trainer = new Trainer(model, recipe)) {
        StepReport report = null;
        for (int step = 0; step < STEPS; ++step) {
          report = trainer.step(batch);
          if (report.step() % 100 == 0 || report.step() == 1) System.out.printf("step %3d  loss %.5f%n", report.step(), report.loss());
        }
        boolean learned = report.loss() < 0.01;
        System.out.println(learned ? "it learned the sine" : "it did not learn the sine");
        System.exit(learned ? 0 : 1);
      }
    }
  }
}
