// Tensor ranks: two ranks, here threads of this process, share each layer: the first of two is split by columns, the second by rows. Results
// are those of one rank within rounding, with the same bits at one degree. Prints what 14_tensor.c prints.
// Run: java -cp scaletrain.jar 14_tensor.java

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

class TensorRanks {
  static final int ROWS = 64, WIDTH = 32, STEPS = 100;

  static Value linear(Graph graph, String name, Value x, long inputs, long outputs) {
    return graph.scope(name, () -> {
      Value weight = graph.parameter("weight", Init.XAVIER, 1, inputs, outputs);
      return x.matmul(weight).add(graph.parameter("bias", Init.ZEROS, 0, outputs));
    });
  }

  /** The state is a digest of all weights and moments. */
  record Outcome(double loss, String state) {}

  static Outcome train(Graph graph, String name, int tensor, int dataRanks, Batch batch) {
    Recipe recipe = new Recipe().batch(ROWS / 2).microBatches(2).lr(0.01).weightDecay(0);
    recipe.tensor(tensor).ranks(tensor * dataRanks).zero(1);
    try (Model model = new Model(graph, 1); Trainer trainer = new Trainer(model, recipe)) {
      StepReport report = null;
      for (int step = 0; step < STEPS; ++step) report = trainer.step(batch);
      System.out.printf("%-22s  step %d  loss %.3f%n", name, report.step(), report.loss());
      return new Outcome(report.loss(), trainer.digest());
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

    boolean alike = false;
    try (Context context = new Context(new ContextOptions().device(device)); Graph graph = new Graph(context)) {
      Value hidden = Ops.gelu(linear(graph, "first", graph.input("x", Graph.BATCH, 1), 1, WIDTH));
      for (String name : new String[] {"second", "third"}) hidden = Ops.gelu(linear(graph, name, hidden, WIDTH, WIDTH));
      Value prediction = linear(graph, "fourth", hidden, WIDTH, 1);
      graph.loss(Ops.mse(prediction, graph.input("y", Graph.BATCH, 1)));
      Outcome one = train(graph, "one rank", 1, 1, batch), shared = train(graph, "two tensor ranks", 2, 1, batch);
      Outcome beside = train(graph, "and two data ranks", 2, 2, batch);
      alike = shared.state().equals(beside.state()) && Math.abs(shared.loss() - one.loss()) < 1e-3;
    }
    System.out.println(alike ? "the same bits at one degree, within rounding of one rank" : "they differ");
    System.exit(alike ? 0 : 1);
  }
}
