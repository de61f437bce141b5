// ZeRO between processes: each rank keeps only its shards of parameters, gradients and optimizer state. The results are bitwise those of one
// rank. All ranks save one checkpoint together, each its own shards, and read a whole weight; a single process resumes from the checkpoint.
// Calls that end in Collective are made by all ranks. Prints the same numbers as 12_zero.c.
// Run: scaletrain launch -n 2 -- java -cp scaletrain.jar 12_zero.java FOLDER

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.scaletrain.Array;
import org.scaletrain.Batch;
import org.scaletrain.Checkpoint;
import org.scaletrain.CheckpointOptions;
import org.scaletrain.Communicator;
import org.scaletrain.CommunicatorOptions;
import org.scaletrain.Context;
import org.scaletrain.ContextOptions;
import org.scaletrain.DType;
import org.scaletrain.Model;
import org.scaletrain.Recipe;
import org.scaletrain.StepReport;
import org.scaletrain.Trainer;

class Zero {
  static final int ROWS = 64, BATCH = 8, STEPS = 50;

  /** A small built-in network that will learn y = sin x. */
  static Model model(Context context) {
    return Model.builtin(context, "mlp", Map.of("inputs", 1, "hidden", List.of(64, 64), "outputs", 1), 1);
  }

  static Recipe recipe(int zero) {
    return new Recipe().batch(BATCH).microBatches(ROWS / BATCH).lr(0.01).weightDecay(0).zero(zero);
  }

  /** Trains on the rows of this rank: every size-th micro-batch of a step. */
  static StepReport train(Trainer trainer, int rank, int size) {
    Array x = Array.allocate(DType.F32, ROWS / size, 1), y = Array.allocate(DType.F32, ROWS / size, 1);
    for (int i = 0, own = 0; i < ROWS; ++i) {
      if (i / BATCH % size != rank) continue;
      float at = -3 + 6 * (float) i / (ROWS - 1);
      x.floats().put(own, at);
      y.floats().put(own++, (float) Math.sin(at));
    }
    Batch batch = Batch.of("x", x, "y", y);
    StepReport report = null;
    for (int step = 0; step < STEPS; ++step) report = trainer.step(batch);
    return report;
  }

  /** Continues from the checkpoint on a single rank, which holds the whole state. */
  static String resumeAlone(Context context, Checkpoint checkpoint) {
    try (Model model = model(context); Trainer trainer = new Trainer(model, recipe(0))) {
      trainer.resume(checkpoint);
      StepReport report = train(trainer, 0, 1);
      System.out.printf("1 rank   step %d  loss %.5f%n", report.step(), report.loss());
      return trainer.digest();
    }
  }

  /** Rank 0 locks the folder; the other ranks write to it, too. */
  static Checkpoint open(Context context, Communicator ranks, Path folder) {
    Checkpoint first = ranks.rank() == 0 ? new Checkpoint(context, folder) : null;
    ranks.barrier("the folder is there");
    return first != null ? first : new Checkpoint(context, folder, new CheckpointOptions().readOnly());
  }

  public static void main(String[] arguments) {
    String device = List.of(arguments).contains("--device") ? arguments[arguments.length - 1] : "cpu";  // --device NAME at the end
    Path folder = Path.of(arguments.length > 0 && !arguments[0].startsWith("--") ? arguments[0] : "zero_run");
    boolean alike = true;
    try (Context context = new Context(new ContextOptions().device(device));
         Communicator ranks = Communicator.env(context, new CommunicatorOptions());  // the rank that scaletrain launch, torchrun, .. assigned
         Communicator own = ranks.duplicate();  // for this program's calls: ranks is the trainer's
         Communicator half = ranks.split(2 * ranks.rank() / ranks.size(), 0, true);  // the ranks of a stage, if there were two stages
         Model model = model(context); Trainer trainer = new Trainer(model, recipe(3), null, ranks);
         Checkpoint checkpoint = open(context, own, folder)) {
      half.barrier("the stage is there");
      train(trainer, ranks.rank(), ranks.size());
      trainer.saveCollective(checkpoint, Map.of());
      StepReport report = train(trainer, ranks.rank(), ranks.size());
      String state = trainer.digestCollective();
      var weight = model.getCollective("layer.0.weight").floats();  // get() would throw WrongState: this rank has only its shard
      if (ranks.rank() == 0) {
        System.out.printf("%d ranks  step %d  loss %.5f%n", ranks.size(), report.step(), report.loss());
        System.out.printf("weights  %.4f %.4f .. %.4f%n", weight.get(0), weight.get(1), weight.get(63));
        alike = resumeAlone(context, checkpoint).equals(state);
        System.out.println(alike ? "the same bits" : "they differ");
      }
    }
    System.exit(alike ? 0 : 1);
  }
}
