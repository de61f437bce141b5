// An interrupted run: ten steps, a checkpoint, ten more steps. A second trainer resumes from the checkpoint and repeats the last ten steps bit
// for bit, with the same rows, dropout, learning rate and moments. The program removes its files at the end. Prints the same numbers as
// 10_checkpoint_resume.c.
// Run: java -cp scaletrain.jar 10_checkpoint_resume.java [FOLDER]

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.scaletrain.Array;
import org.scaletrain.Batch;
import org.scaletrain.Checkpoint;
import org.scaletrain.Context;
import org.scaletrain.ContextOptions;
import org.scaletrain.DType;
import org.scaletrain.Data;
import org.scaletrain.Json;
import org.scaletrain.LoadReport;
import org.scaletrain.Model;
import org.scaletrain.Pending;
import org.scaletrain.Recipe;
import org.scaletrain.StepReport;
import org.scaletrain.Trainer;

class CheckpointResume {
  static final int ROWS = 96;

  /** A trainer for y = x^2. The library reads the rows of these arrays in shuffled order. */
  static Trainer trainer(Context context) {
    Array x = Array.allocate(DType.F32, ROWS, 1), y = Array.allocate(DType.F32, ROWS, 1);
    for (int i = 0; i < ROWS; ++i) {
      float at = -1 + 2f * i / (ROWS - 1);
      x.floats().put(i, at);
      y.floats().put(i, at * at);
    }
    Model model = Model.builtin(context, "mlp", Map.of("inputs", 1, "hidden", List.of(32), "outputs", 1), 1);
    Recipe recipe = new Recipe().batch(32).lr(0.01).dropout(0.1).warmup(15);
    return new Trainer(model, recipe, Data.arrays(context, Batch.of("x", x, "y", y)));
  }

  static void train(Trainer trainer, long until) {
    StepReport report;
    do {
      report = trainer.step();
      if (report.step() % 5 == 0) System.out.printf("  step %2d  loss %.9f  lr %.6f%n", report.step(), report.loss(), report.lr());
    } while (report.step() < until);
  }

  static void remove(Path folder) throws IOException {
    try (Stream<Path> all = Files.walk(folder)) {
      for (Path path : all.sorted(Comparator.reverseOrder()).toList()) Files.delete(path);
    }
  }

  public static void main(String[] arguments) throws IOException {
    String device = List.of(arguments).contains("--device") ? arguments[arguments.length - 1] : "cpu";  // --device NAME at the end
    Path folder = Path.of(arguments.length > 0 && !arguments[0].startsWith("--") ? arguments[0] : "checkpoint_resume_run");
    boolean same;
    try (Context context = new Context(new ContextOptions().device(device)); Checkpoint checkpoint = new Checkpoint(context, folder);
         Trainer first = trainer(context); Trainer second = trainer(context)) {
      System.out.println("the first trainer");
      train(first, 10);
      // Returns when the state is copied; the files are written in the background.
      try (Pending saved = first.beginSave(checkpoint, Map.of("note", "half of it"))) {
        train(first, 20);
        saved.await();
      }

      System.out.println("the second one");
      LoadReport loaded = second.resume(checkpoint);  // the newest valid checkpoint
      System.out.printf("  resumed from %s, %d tensors, %s%n", loaded.name(), loaded.read(), Json.text(loaded.metadata()));
      train(second, 20);

      same = first.digest().equals(second.digest());
      System.out.println(same ? "the same bits" : "they differ");
    }
    remove(folder);
    if (!same) System.exit(1);
  }
}
