// A custom loss, computed by the program between forward and backward: missing stock costs nine times as much as surplus stock, so the net
// learns the order that is enough on 90 % of the days. Prints the same numbers as 05_own_loss.c.
// Run: java -cp scaletrain.jar 05_own_loss.java

import java.util.List;
import java.util.Map;
import org.scaletrain.Array;
import org.scaletrain.Batch;
import org.scaletrain.Context;
import org.scaletrain.ContextOptions;
import org.scaletrain.Model;
import org.scaletrain.Recipe;
import org.scaletrain.Trainer;

class OwnLoss {
  static final int ROWS = 64;
  static int state = 1;
  static int enough, days;

  /** A random number between 0 and 1. */
  static float uniform() {
    state = state * 1664525 + 1013904223;
    return (float) (state >>> 8) / (1 << 24);
  }

  /** Draws x; the sales are 2 x + 1, plus a random number between 0 and 1. */
  static void someDays(float[] x, float[] sold) {
    for (int i = 0; i < ROWS; ++i) {
      x[i] = uniform();
      sold[i] = 2 * x[i] + 1 + uniform();
    }
  }

  /** The mean cost of the orders; also computes its gradient by each order. */
  static double costOf(float[] order, float[] sold, float[] gradient) {
    double sum = 0;
    for (int i = 0; i < ROWS; ++i) {
      double missing = (double) sold[i] - order[i];
      sum += missing > 0 ? 0.9 * missing : -0.1 * missing;
      gradient[i] = (missing > 0 ? -0.9f : 0.1f) / ROWS;  // the library does not divide by the number of rows
    }
    return sum / ROWS;
  }

  static boolean run(String device) {
    float[] x = new float[ROWS], sold = new float[ROWS], gradient = new float[ROWS];
    Batch batch = Batch.of("x", Array.of(x, ROWS, 1));  // no "y", since the graph's own loss is not used
    Batch byOrder = Batch.of("prediction", Array.of(gradient, ROWS, 1));
    Recipe recipe = new Recipe().batch(64).lr(0.01).warmup(0).weightDecay(0);
    try (Context context = new Context(new ContextOptions().device(device));
        Model model = Model.builtin(context, "mlp", Map.of("inputs", 1, "hidden", new int[] {32}, "outputs", 1), 1);
        Trainer trainer = new Trainer(model, recipe)) {
      double first = 0, cost = 0;
      for (int step = 1; step <= 1000; ++step) {
        someDays(x, sold);
        float[] order = trainer.forward(batch).get("prediction").toFloats();
        cost = costOf(order, sold, gradient);
        for (int i = 0; i < ROWS && step > 900; ++i, ++days) if (order[i] >= sold[i]) ++enough;
        trainer.backward(byOrder);
        trainer.apply();
        if (step == 1) first = cost;
        if (step == 1 || step % 200 == 0) System.out.printf("step %4d  cost %.3f%n", step, cost);
      }
      double share = (double) enough / days;
      System.out.printf("orders were enough on %.0f %% of the last days%n", 100 * share);
      return cost <= 0.1 * first && share >= 0.85 && share <= 0.95;  // the optimal orders cost 0.045 and are enough on 90 % of days
    }
  }

  public static void main(String[] arguments) {
    String device = List.of(arguments).contains("--device") ? arguments[arguments.length - 1] : "cpu";  // --device NAME at the end
    System.exit(run(device) ? 0 : 1);
  }
}
