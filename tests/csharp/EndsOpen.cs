// A program that ends while objects are open and native threads are about to call it. ProgramEndTests starts it on its own runtime.
// EndsOpen.exe open|run|thread|fill|exit|collect
using System;
using System.Threading;
using ScaleTrain;

static class EndsOpen {
  const int Rows = 64;

  static int Main(string[] arguments) {
    var context = new Context(new ContextOptions { Threads = 2, Log = (level, area, text) => {} });
    bool isSlow = arguments[0] == "fill";
    var filling = new ManualResetEventSlim();
    Data data = Data.RowsOf(context, Rows, new[] { new Field("x", DType.F32, 1), new Field("y", DType.F32, 1) }, (rows, arrays) => {
      foreach (BorrowedArray array in arrays) array.Floats.Fill(1);
      filling.Set();
      if (isSlow) Thread.Sleep(300);
    });
    var trainer = new Trainer(Model.Builtin(context, "mlp", 1, new { hidden = new[] { 8 } }), new Recipe { Batch = Rows }, data);
    trainer.SetSchedule(k => 0.1);
    var x = new float[Rows, 1];
    object[] kept = { Data.Arrays(context, new Batch { { "x", x } }), Tensor.Wrap(context, x), new Optimizer(context, new Batch { { "x", x } }).State(), new Tensor(context, DType.F32, 3).Memory<float>(), trainer };
    if (arguments[0] == "open") trainer.Step();
    if (arguments[0] == "run" || isSlow) {
      trainer.RunAsync(1000000000);  // on a background thread
      filling.Wait();
      if (!isSlow) Thread.Sleep(50);
    }
    if (arguments[0] == "thread") {
      new Thread(() => trainer.Run(1000000000, report => true)) { IsBackground = true }.Start();
      filling.Wait();
      Thread.Sleep(20);
    }
    if (arguments[0] == "exit") trainer.Run(10, report => {
      Console.WriteLine("end");
      Environment.Exit(0);
      return true;
    });
    if (arguments[0] == "collect") {
      kept = null;
      trainer = null;
      GC.Collect();
    }
    Console.WriteLine("end");
    return kept == null || kept.Length > 0 ? 0 : 1;
  }
}
