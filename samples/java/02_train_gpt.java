// Trains a small GPT on a text file, evaluates it on held-out text, generates text, and saves its weights. Prints the same numbers as
// 02_train_gpt.c. Run: java -cp scaletrain.jar 02_train_gpt.java TEXT [WEIGHTS.safetensors] [--device NAME]

import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.scaletrain.Context;
import org.scaletrain.ContextOptions;
import org.scaletrain.Data;
import org.scaletrain.Evaluation;
import org.scaletrain.GenerateOptions;
import org.scaletrain.Model;
import org.scaletrain.Predictor;
import org.scaletrain.Recipe;
import org.scaletrain.StepReport;
import org.scaletrain.Trainer;

class TrainGpt {
  static final Map<String, Object> OPTIONS = Map.of("layers", 2, "width", 64, "heads", 2, "context", 32);

  static void show(StepReport report) {
    if (report.step() % 20 == 0) System.out.printf("step %3d  loss %.3f%n", report.step(), report.loss());
  }

  /** Tokens are bytes here. */
  static void write(Model model, String beginning) {
    System.out.print(beginning);
    try (Predictor predictor = new Predictor(model)) {
      predictor.generate(beginning.chars().toArray(), new GenerateOptions().tokens(60), token -> {
        System.out.print(token >= 32 && token < 127 ? (char) token : ' ');
        return true;  // false would end the run
      });
    }
    System.out.println();
  }

  /** Weights written to a file and read by another model are equal. */
  static boolean roundTrip(Context context, Model model, Path path) {
    String name = "block.0.attention.qkv.weight";
    try (Model copy = Model.builtin(context, "gpt", OPTIONS, 2)) {  // another seed: other weights until the file is read
      model.writeFile(path);
      copy.readFile(path);
      boolean equal = Arrays.equals(model.get(name).toFloats(), copy.get(name).toFloats());
      System.out.printf("weights in %s: %s%n", path, equal ? "read back, equal" : "DIFFERENT");
      return equal;
    }
  }

  static boolean run(Path text, Path weights, String device) {
    try (Context context = new Context(new ContextOptions().device(device)); Data data = Data.files(context, text, 32)) {
      Data.Split parts = data.split(0.1);  // the last tenth of the text is held out
      Recipe recipe = new Recipe().batch(16).lr(0.003);
      try (Model model = Model.builtin(context, "gpt", OPTIONS, 1); Trainer trainer = new Trainer(model, recipe, parts.training())) {
        Evaluation before = trainer.evaluate(parts.validation());
        trainer.run(100, TrainGpt::show);
        Evaluation after = trainer.evaluate(parts.validation());
        System.out.printf("validation loss %.3f, then %.3f nats a byte%n", before.loss(), after.loss());

        write(model, "The ");
        return roundTrip(context, model, weights) && after.loss() < before.loss() - 1;  // guessing costs 5.5 nats per byte
      }
    }
  }

  public static void main(String[] arguments) {
    if (arguments.length < 1) {
      System.err.println("usage: 02_train_gpt.java TEXT [WEIGHTS.safetensors] [--device NAME]");
      System.exit(2);
    }
    String device = List.of(arguments).contains("--device") ? arguments[arguments.length - 1] : "cpu";  // --device NAME at the end
    Path weights = Path.of(arguments.length > 1 && !arguments[1].startsWith("--") ? arguments[1] : "gpt.safetensors");
    System.exit(run(Path.of(arguments[0]), weights, device) ? 0 : 1);
  }
}
