// The program that leaks.py runs under valgrind. Makes steps and the other long calls more than once, with saves, callbacks, held arrays and errors. At the
// end it leaks schedules on purpose; it creates no others.
using System;
using System.IO;
using System.Runtime.InteropServices;
using System.Text;
using ScaleTrain;

static class LeakTrial {
  static void Main() {
    Train();
    Lose();
    for (int i = 0; i < 3; ++i) {
      GC.Collect();
      GC.WaitForPendingFinalizers();
    }
    Console.WriteLine("live handles: " + Library.LiveHandles());
  }

  static void Train() {
    var x = new float[64, 1];
    var y = new float[64, 1];
    for (int i = 0; i < 64; ++i) y[i, 0] = (float)Math.Sin(x[i, 0] = -3 + 6f * i / 63);
    var batch = new Batch { { "x", x }, { "y", y } };
    using (var context = new Context(new ContextOptions { Threads = 2, Log = (level, area, text) => GC.KeepAlive(text) }))
    using (Model model = Model.Builtin(context, "mlp", 1, new { hidden = new[] { 8 } }))
    using (Data data = Data.Arrays(context, batch))
    using (var recipe = new Recipe { Batch = 64 })
    using (var trainer = new Trainer(model, recipe, data))
    using (var predictor = new Predictor(model)) {
      for (int i = 0; i < 10; ++i) trainer.Step(batch);
      trainer.Run(30, report => true);
      for (int i = 0; i < 3; ++i) {
        predictor.Run(new Batch { { "x", x } }, new Batch { { "prediction", new float[64, 1] } });
        trainer.Forward(batch);
        trainer.Backward();
        trainer.Apply();
        trainer.StepAsync(batch).Wait();
        HoldAndLetGo(context);
        Refused(() => trainer.Step(new Batch { { "x", x } }));
        Refused(() => trainer.Run(trainer.Step(batch).Step + 5, report => { throw new InvalidDataException("mine"); }));
        using (var stream = new MemoryStream()) {
          model.Write(stream);
          stream.Position = 0;
          model.Read(stream);
        }
      }
      SaveAndGoOn(context, trainer, model, batch);
    }
  }

  static void SaveAndGoOn(Context context, Trainer trainer, Model model, Batch batch) {
    string folder = Path.Combine(Path.GetTempPath(), "scaletrain_leaks_" + Guid.NewGuid().ToString("N"));
    using (var checkpoint = new Checkpoint(context, folder, new CheckpointOptions { KeepLast = 2 })) {
      trainer.SaveEvery(checkpoint, 1);
      for (int i = 0; i < 3; ++i) GC.KeepAlive(trainer.Step(batch).SaveError);
      trainer.SaveEvery(null);
      trainer.SaveAsync(checkpoint, new { note = "in the background" }).Wait();
      trainer.Resume(checkpoint);
      model.Load(checkpoint, null, new LoadOptions { Names = new[] { "*" } });
      checkpoint.Save(1000000, batch);
      checkpoint.Load(batch, null, new LoadOptions { Overwrite = true });
      checkpoint.Verify();
      Refused(() => checkpoint.Load(new Batch { { "other", new float[1] } }));
      Refused(() => new Checkpoint(context, folder));
      GC.KeepAlive(checkpoint.Progress);
    }
    Directory.Delete(folder, true);
  }

  // Arrays that the library holds, released by Dispose or left to the garbage collector.
  static void HoldAndLetGo(Context context) {
    var w = new float[100];
    using (var optimizer = new Optimizer(context, new Batch { { "w", w } }, new { optimizer = "adamw" })) optimizer.Step(new float[100]);
    GC.KeepAlive(Tensor.Wrap(context, w).Memory<float>());
    GC.KeepAlive(new Accumulator(context, 2, w));
  }

  static void Refused(Action call) {
    try {
      call();
    } catch (Exception refused) when (refused is ScaleTrainException || refused is InvalidDataException) {
      return;
    }
    throw new InvalidOperationException("a call that must fail did not");
  }

  // Leaks C++ schedules, as a defect of the binding would.
  static void Lose() {
    for (int i = 0; i < 3; ++i) new_Schedule(Encoding.UTF8.GetBytes("{\"lr\": 0.1}\0"));
  }

  [DllImport("libscaletrain_csharp.so", EntryPoint = "CSharp_ScaleTrainfNative_new_Schedule___")]
  static extern IntPtr new_Schedule(byte[] settings);
}
