// Pipeline stages: layers in two stages, here threads of this process, and micro-batches that pass through them. With one micro-batch the
// split is naive model parallelism: each stage waits half of the time. The bits are those of one stage. Prints what 13_pipeline.c prints.
// Run: java -cp scaletrain.jar 13_pipeline.java

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

class Pipelined {
  static final int ROWS = 64, WIDTH = 32, STEPS = 100;

  /** A layer in an outermost scope: a stage may begin with it. */
  static Value linear(Graph graph, String name, Value x, long inputs, long outputs) {
    return graph.scope(name, () -> {
      Value weight = graph.parameter("weight", Init.XAVIER, 1, inputs, outputs);
      return x.matmul(weight).add(graph.parameter("bias", Init.ZEROS, 0, outputs));
    });
  }

  /** Returns a digest of all weights and moments. */
  static String train(Graph graph, String name, int stages, String schedule, int microBatches, Batch batch) {
    Recipe recipe = new Recipe().batch(ROWS / microBatches).microBatches(microBatches).lr(0.01).weightDecay(0);
    recipe.stages(stages).schedule(schedule);
    try (Model model = new Model(graph, 1); Trainer trainer = new Trainer(model, recipe)) {
      StepReport report = null;
      for (int step = 0; step < STEPS; ++step) report = trainer.step(batch);  // the host passes the rows once
      System.out.printf("%-11s  %d micro-batches  step %d  loss %.5f%n", name, microBatches, report.step(), report.loss());
      return trainer.digest();
    }
  }

  public static void main(String[] arguments) {
    String device = List.of(arguments).contains("--device") ? arguments[arguments.length - 1] : "cpu";  // --device NAME at the end
    String schedule = arguments.length > 0 && !arguments[0].startsWith("--") ? arguments[0] : "zb-v";  // or gpipe, interleaved, zb-h1
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
      for (String name : new String[] {"second", "third"}) hidden = Ops.gelu(linear(graph, name, hidden, WIDTH, WIDTH));
      Value prediction = linear(graph, "fourth", hidden, WIDTH, 1);
      graph.loss(Ops.mse(prediction, graph.input("y", Graph.BATCH, 1)));
      String one = train(graph, "one stage", 1, "1f1b", 1, batch);
      alike &= train(graph, "naive split", 2, "1f1b", 1, batch).equals(one);
      one = train(graph, "one stage", 1, "1f1b", 8, batch);
      alike &= train(graph, "1f1b", 2, "1f1b", 8, batch).equals(one);
      alike &= train(graph, schedule, 2, schedule, 8, batch).equals(one);
    }
    System.out.println(alike ? "the same bits with the same micro-batches" : "they differ");
    System.exit(alike ? 0 : 1);
  }
}
