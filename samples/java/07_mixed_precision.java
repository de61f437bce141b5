// Trains the same small GPT in fp32, bf16 and fp16, from the same weights on the same text, and shows the losses side by side. In fp16 the
// loss is scaled. The scale starts too high, so the first steps are skipped until it fits. Prints the same numbers as 07_mixed_precision.c.
// Run: java -cp scaletrain.jar 07_mixed_precision.java TEXT

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.scaletrain.Context;
import org.scaletrain.ContextOptions;
import org.scaletrain.Data;
import org.scaletrain.Model;
import org.scaletrain.Recipe;
import org.scaletrain.StepReport;
import org.scaletrain.Trainer;

class MixedPrecision {
  static final int STEPS = 60, EVERY = 10;

  static class Run {
    final String precision;
    final double[] losses = new double[STEPS / EVERY];
    double validation, scale;
    int skipped;

    Run(String precision) {
      this.precision = precision;
    }

    void record(StepReport report) {
      if (report.step() % EVERY == 0) losses[(int) report.step() / EVERY - 1] = report.loss();
      if (report.skipped()) ++skipped;
      scale = report.lossScale();
    }

    void train(Context context, Data.Split data) {
      Recipe recipe = new Recipe().set("precision", precision).batch(8).lr(0.001);
      if (precision.equals("fp16")) recipe.lossScaleInitial(4194304);
      try (Model model = Model.builtin(context, "gpt", Map.of("layers", 2, "width", 64, "heads", 2, "context", 32), 1);
          Trainer trainer = new Trainer(model, recipe, data.training())) {  // weights, moments and gradients are fp32 in all three runs
        trainer.run(STEPS, this::record);
        validation = trainer.evaluate(data.validation()).loss();
      }
    }

    /** Guessing costs 5.5 nats per byte. The steps that fp16 skips at the start cost it a little. */
    boolean isClose(Run to) {
      return validation < 4.5 && Math.abs(validation / to.validation - 1) < 0.05 && skipped > 0 == precision.equals("fp16");
    }
  }

  static void line(Object name, List<Run> runs, Function<Run, String> cell) {
    System.out.printf("%-12s", name);
    for (Run run : runs) System.out.printf(" %8s", cell.apply(run));
    System.out.println();
  }

  static boolean run(Path text, String device) {
    List<Run> runs = List.of(new Run("fp32"), new Run("bf16"), new Run("fp16"));
    try (Context context = new Context(new ContextOptions().device(device)); Data data = Data.files(context, text, 32)) {
      Data.Split parts = data.split(0.1);
      for (Run run : runs) run.train(context, parts);
    }
    line("step", runs, run -> run.precision);
    for (int k = 0; k < STEPS / EVERY; ++k) {
      int at = k;
      line((k + 1) * EVERY, runs, run -> String.format("%.4f", run.losses[at]));
    }
    line("validation", runs, run -> String.format("%.4f", run.validation));
    line("loss scale", runs, run -> String.format("%.0f", run.scale));
    line("skipped", runs, run -> String.valueOf(run.skipped));
    return runs.stream().allMatch(run -> run.isClose(runs.get(0)));
  }

  public static void main(String[] arguments) {
    if (arguments.length < 1) {
      System.err.println("usage: 07_mixed_precision.java TEXT [--device NAME]");
      System.exit(2);
    }
    String device = List.of(arguments).contains("--device") ? arguments[arguments.length - 1] : "cpu";  // --device NAME at the end
    System.exit(run(Path.of(arguments[0]), device) ? 0 : 1);
  }
}
