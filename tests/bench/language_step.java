// Java's side of language_steps.py: language_step.c describes it.

import java.util.Map;
import java.util.Scanner;
import org.scaletrain.Array;
import org.scaletrain.Batch;
import org.scaletrain.Context;
import org.scaletrain.ContextOptions;
import org.scaletrain.DType;
import org.scaletrain.Model;
import org.scaletrain.Recipe;
import org.scaletrain.Trainer;

class LanguageStep {
  static final int ROWS = 8, CONTEXT = 32;

  public static void main(String[] arguments) {
    Array tokens = Array.allocate(DType.I32, ROWS, CONTEXT), targets = Array.allocate(DType.I32, ROWS, CONTEXT);
    for (int i = 0; i < ROWS * CONTEXT; ++i) {
      tokens.ints().put(i, i * 7 % 256);
      targets.ints().put(i, (i + 1) * 7 % 256);
    }
    Batch batch = Batch.of("tokens", tokens, "targets", targets);
    try (Context context = new Context(new ContextOptions().threads(1));
         Model model = Model.builtin(context, "gpt", Map.of("layers", 2, "width", 64, "heads", 2, "context", CONTEXT), 1);
         Trainer trainer = new Trainer(model, new Recipe().batch(ROWS))) {
      Scanner lines = new Scanner(System.in);
      while (lines.hasNextInt()) {
        int steps = lines.nextInt();
        long begin = System.nanoTime();
        for (int i = 0; i < steps; ++i) trainer.step(batch);
        System.out.println(System.nanoTime() - begin);
      }
    }
  }
}
