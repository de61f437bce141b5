// Predicts while training: one thread trains a net on y = sin x while another predicts the same value repeatedly. Each prediction uses the
// weights of one finished step, taken by Predictor.refresh. No thread waits for another. Prints the same numbers as 04_predict_while_training.c.
// Run: java -cp scaletrain.jar 04_predict_while_training.java

import java.nio.FloatBuffer;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.scaletrain.Array;
import org.scaletrain.Batch;
import org.scaletrain.Context;
import org.scaletrain.ContextOptions;
import org.scaletrain.DType;
import org.scaletrain.Model;
import org.scaletrain.Predictor;
import org.scaletrain.Recipe;
import org.scaletrain.Trainer;

class PredictWhileTraining {
  static final int ROWS = 64, ROUNDS = 4, STEPS = 150;

  static Batch sine() {
    Array x = Array.allocate(DType.F32, ROWS, 1), y = Array.allocate(DType.F32, ROWS, 1);
    FloatBuffer xs = x.floats(), ys = y.floats();
    for (int i = 0; i < ROWS; ++i) {
      float at = -3 + 6 * (float) i / (ROWS - 1);
      xs.put(at);
      ys.put((float) Math.sin(at));
    }
    return Batch.of("x", x, "y", y);
  }

  /** Runs a forward pass of one row. May be called from any thread at any time. */
  static float ask(Predictor predictor, float x) {
    float[] answer = new float[1];
    predictor.run(Batch.of("x", Array.of(new float[] {x}, 1, 1)), Batch.of("prediction", Array.of(answer, 1, 1)));
    return answer[0];
  }

  static boolean run(String device) {
    Batch batch = sine();
    Recipe recipe = new Recipe().batch(64).lr(0.01).weightDecay(0);
    try (Context context = new Context(new ContextOptions().device(device));
        Model model = Model.builtin(context, "mlp", Map.of("hidden", new int[] {32}), 1);
        Trainer trainer = new Trainer(model, recipe);
        Predictor predictor = new Predictor(model)) {  // has a snapshot of the weights, 4 bytes per parameter
      boolean steady = true;
      float answer = ask(predictor, 1.5f);
      for (int round = 1; round <= ROUNDS; ++round) {
        CompletableFuture<Void> training = CompletableFuture.runAsync(() -> {
          for (int step = 0; step < STEPS; ++step) trainer.step(batch);
        });
        for (int i = 0; i < 200; ++i) steady &= ask(predictor, 1.5f) == answer;  // the snapshot does not change
        training.join();  // rethrows an exception of the training
        predictor.refresh();  // also allowed during a step: takes the weights of the newest finished one
        answer = ask(predictor, 1.5f);
        System.out.printf("after %3d steps  sin 1.5 is about %.3f%n", round * STEPS, answer);
      }
      boolean learned = Math.abs(answer - Math.sin(1.5)) < 0.05 && steady;
      System.out.println(learned ? "it answered while it learned" : "it did not");
      return learned;
    }
  }

  public static void main(String[] arguments) {
    String device = List.of(arguments).contains("--device") ? arguments[arguments.length - 1] : "cpu";  // --device NAME at the end
    System.exit(run(device) ? 0 : 1);
  }
}
