// Data parallelism: the micro-batches of a step are shared among ranks, here threads of this process. One recipe key sets their number;
// losses and weights are bitwise equal for any number of ranks. Prints the same numbers as 11_data_parallel.c.
// Run: java -cp scaletrain.jar 11_data_parallel.java

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

class DataParallel {
  static final int ROWS = 64, WIDTH = 32, STEPS = 100;

  static Value linear(Graph graph, String name, Value x, long inputs, long outputs) {
    return graph.scope(name, () -> {
      Value weight = graph.parameter("weight", Init.XAVIER, 1, inputs, outputs);
      return x.matmul(weight).add(graph.parameter("bias", Init.ZEROS, 0, outputs));
    });
  }

  /** Trains on this number of ranks. Returns a digest of all weights and moments. */
  static String train(Graph graph, int ranks, Batch batch) {
    Recipe recipe = new Recipe().batch(8).microBatches(8).lr(0.01).weightDecay(0).ranks(ranks);
    try (Model model = new Model(graph, 1); Trainer trainer = new Trainer(model, recipe)) {
      StepReport report = null;
      for (int step = 0; step < STEPS; ++step) report = trainer.step(batch);  // the batch has the rows of all ranks
      System.out.printf("%d rank%s  step %d  loss %.5f%n", ranks, ranks == 1 ? " " : "s", report.step(), report.loss());
      return trainer.digest();
    }
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

    boolean alike = true;
    try (Context context = new Context(new ContextOptions().device(device)); Graph graph = new Graph(context)) {
      Value hidden = Ops.gelu(linear(graph, "first", graph.input("x", Graph.BATCH, 1), 1, WIDTH));
      Value prediction = linear(graph, "second", hidden, WIDTH, 1);
      graph.loss(Ops.mse(prediction, graph.input("y", Graph.BATCH, 1)));
      String first = train(graph, 1, batch);
      for (int ranks : new int[] {2, 3, 8}) alike &= train(graph, ranks, batch).equals(first);
    }
    System.out.println(alike ? "all have the same bits" : "they differ");
    System.exit(alike ? 0 : 1);
  }
}
