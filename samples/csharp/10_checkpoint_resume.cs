// A run that is interrupted: ten steps, a checkpoint, ten more. A second trainer goes on from the checkpoint and makes the same ten, to the
// last bit: with the same rows of the data, the same dropout, learning rate and moments. The program removes what it wrote. The same numbers
// as 10_checkpoint_resume.c.
// Build: mcs -r:ScaleTrain.dll 10_checkpoint_resume.cs
using System;
using System.Globalization;
using System.IO;
using System.Linq;
using ScaleTrain;

static class CheckpointResume {
  const int Rows = 96;

  // y = x^2 in a shuffled order, as the library draws it from these arrays.
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
    CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
    string folder = arguments.Length > 0 ? arguments[0] : "checkpoint_resume_run";
    bool same;
    using (var context = new Context())
    using (var checkpoint = new Checkpoint(context, folder))
    using (Trainer first = MakeTrainer(context))
    using (Trainer second = MakeTrainer(context)) {
      Console.WriteLine("the first trainer");
      Train(first, 10);
      // The step goes on when the state is copied; the files come to be meanwhile.
      using (Pending saved = first.BeginSave(checkpoint, new { note = "half of it" })) {
        Train(first, 20);
        saved.Wait();
      }

      Console.WriteLine("the second one");
      LoadReport loaded = second.Resume(checkpoint);  // the newest that is whole
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
