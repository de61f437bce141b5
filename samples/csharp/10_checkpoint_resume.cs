// An interrupted run: ten steps, a checkpoint, ten more steps. A second trainer resumes from the checkpoint and repeats the last ten steps bit
// for bit, with the same rows, dropout, learning rate and moments. The program removes its files at the end. Prints the same numbers as
// 10_checkpoint_resume.c.
// Build: mcs -r:ScaleTrain.dll 10_checkpoint_resume.cs
using System;
using System.Globalization;
using System.IO;
using System.Linq;
using ScaleTrain;

static class CheckpointResume {
  const int Rows = 96;

  // A trainer for y = x^2. The library reads the rows of these arrays in shuffled order.
  static Trainer MakeTrainer(Context context) {
    float[] x = Enumerable.Range(0, Rows).Select(i => -1 + 2.0f * i / (Rows - 1)).ToArray();
    float[] y = x.Select(at => at * at).ToArray();
    Model model = Model.Builtin(context, "mlp", 1, new { inputs = 1, hidden = new[] { 32 }, outputs = 1 });
    var recipe = new Recipe { Batch = 32, Lr = 0.01, Dropout = 0.1, Warmup = 15 };
    return new Trainer(model, recipe, Data.Arrays(context, new Batch { { "x", x, Rows, 1 }, { "y", y, Rows, 1 } }));
  }

  static void Train(Trainer trainer, long until) {
    StepReport report;
    do {
      report = trainer.Step();
      if (report.Step % 5 == 0) Console.WriteLine("  step {0,2}  loss {1:F9}  lr {2:F6}", report.Step, report.Loss, report.Lr);
    } while (report.Step < until);
  }

  static int Main(string[] arguments) {
    string device = arguments.Contains("--device") ? arguments.Last() : "cpu";  // --device NAME at the end
    CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
    string folder = arguments.Length > 0 && !arguments[0].StartsWith("--") ? arguments[0] : "checkpoint_resume_run";
    bool same;
    using (var context = new Context(new ContextOptions { Device = device }))
    using (var checkpoint = new Checkpoint(context, folder))
    using (Trainer first = MakeTrainer(context))
    using (Trainer second = MakeTrainer(context)) {
      Console.WriteLine("the first trainer");
      Train(first, 10);
      // Returns when the state is copied; the files are written in the background.
      using (Pending saved = first.BeginSave(checkpoint, new { note = "half of it" })) {
        Train(first, 20);
        saved.Wait();
      }

      Console.WriteLine("the second one");
      LoadReport loaded = second.Resume(checkpoint);  // the newest valid checkpoint
      string metadata = "{" + string.Join(",", loaded.Metadata.Select(pair => "\"" + pair.Key + "\":\"" + pair.Value + "\"")) + "}";
      Console.WriteLine("  resumed from {0}, {1} tensors, {2}", loaded.Name, loaded.Read, metadata);
      Train(second, 20);

      same = first.Digest() == second.Digest();
      Console.WriteLine(same ? "the same bits" : "they differ");
    }
    Directory.Delete(folder, true);
    return same ? 0 : 1;
  }
}
