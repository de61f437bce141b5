// ZeRO between processes: each rank keeps only its shards of parameters, gradients and optimizer state. The results are bitwise those of one
// rank. All ranks save one checkpoint together, each its own shards, and read a whole weight; a single process resumes from the checkpoint.
// Calls that end in Collective are made by all ranks. Prints the same numbers as 12_zero.c.
// Build: mcs -r:ScaleTrain.dll 12_zero.cs    Run: scaletrain launch -n 2 -- mono 12_zero.exe FOLDER
using System;
using System.Globalization;
using System.Linq;
using ScaleTrain;

static class Zero {
  const int Rows = 64, BatchRows = 8, Steps = 50;

  // A small built-in network that will learn y = sin x.
  static Model MakeModel(Context context) {
    return Model.Builtin(context, "mlp", 1, new { inputs = 1, hidden = new[] { 64, 64 }, outputs = 1 });
  }

  static Recipe MakeRecipe(int zero) {
    return new Recipe { Batch = BatchRows, MicroBatches = Rows / BatchRows, Lr = 0.01, WeightDecay = 0, Zero = zero };
  }

  // Trains on the rows of this rank: every size-th micro-batch of a step.
  static StepReport Train(Trainer trainer, int rank, int size) {
    int[] own = Enumerable.Range(0, Rows).Where(i => i / BatchRows % size == rank).ToArray();
    float[] x = own.Select(i => -3.0f + 6.0f * i / (Rows - 1)).ToArray();
    float[] y = x.Select(at => (float)Math.Sin(at)).ToArray();
    var batch = new Batch { { "x", x, own.Length, 1 }, { "y", y, own.Length, 1 } };
    StepReport report = default(StepReport);
    for (int step = 0; step < Steps; ++step) report = trainer.Step(batch);
    return report;
  }

  // Continues from the checkpoint on a single rank, which holds the whole state.
  static string ResumeAlone(Context context, Checkpoint checkpoint) {
    using (Model model = MakeModel(context))
    using (Recipe recipe = MakeRecipe(0))
    using (var trainer = new Trainer(model, recipe)) {
      trainer.Resume(checkpoint);
      StepReport report = Train(trainer, 0, 1);
      Console.WriteLine($"1 rank   step {report.Step}  loss {report.Loss:F5}");
      return trainer.Digest();
    }
  }

  // Rank 0 locks the folder; the other ranks write to it, too.
  static Checkpoint Open(Context context, Communicator ranks, string folder) {
    Checkpoint first = ranks.Rank == 0 ? new Checkpoint(context, folder) : null;
    ranks.Barrier("the folder is there");
    return first ?? new Checkpoint(context, folder, new CheckpointOptions { ReadOnly = true });
  }

  static int Main(string[] arguments) {
    string device = arguments.Contains("--device") ? arguments.Last() : "cpu";  // --device NAME at the end
    CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
    using (var context = new Context(new ContextOptions { Device = device }))
    using (Communicator ranks = Communicator.Env(context))  // the rank that scaletrain launch, torchrun, mpirun or srun assigned
    using (Communicator own = ranks.Duplicate())  // for this program's calls: ranks is the trainer's
    using (Communicator half = ranks.Split(2 * ranks.Rank / ranks.Size, 0, true))  // the ranks of a stage, if there were two stages
    using (Model model = MakeModel(context))
    using (Recipe recipe = MakeRecipe(3))
    using (var trainer = new Trainer(model, recipe, null, ranks))
    using (Checkpoint checkpoint = Open(context, own, arguments.Length > 0 && !arguments[0].StartsWith("--") ? arguments[0] : "zero_run")) {
      Train(trainer, ranks.Rank, ranks.Size);
      trainer.SaveCollective(checkpoint);
      StepReport report = Train(trainer, ranks.Rank, ranks.Size);
      string state = trainer.DigestCollective();
      float[] weight = model.GetCollective("layer.0.weight");  // Get would throw WrongStateException: this rank has only its shard
      if (ranks.Rank != 0) return 0;

      Console.WriteLine($"{ranks.Size} ranks  step {report.Step}  loss {report.Loss:F5}");
      Console.WriteLine($"weights  {weight[0]:F4} {weight[1]:F4} .. {weight[63]:F4}");
      bool alike = ResumeAlone(context, checkpoint) == state;
      Console.WriteLine(alike ? "the same bits" : "they differ");
      return alike ? 0 : 1;
    }
  }
}
