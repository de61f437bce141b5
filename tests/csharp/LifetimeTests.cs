using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Threading;
using NUnit.Framework;
using ScaleTrain;

/// <summary>Thousands of objects, steps and callbacks leave nothing behind. ST_LONG_TRIALS=1 runs the full sizes.</summary>
[TestFixture]
public class LifetimeTests {
  private static readonly long megabyte = 1024;

  /// <summary>Repeats work and asserts that resident memory does not grow after the first tenth of the rounds.</summary>
  private static void Flat(Action work, int rounds) {
    for (int i = 0; i < Math.Max(1, rounds / 10); ++i) work();
    Nets.Collect();
    long before = Nets.ResidentKb();
    for (int i = 0; i < rounds; ++i) work();
    Nets.Collect();
    Assert.Less(Nets.ResidentKb() - before, 8 * megabyte);
  }

  [Test]
  public void StepsLeaveMemoryFlat() {
    using (var context = new Context(new ContextOptions { Threads = 1 }))
    using (Trainer trainer = Nets.Of(context)) {
      Batch batch = Nets.Sine();
      Flat(() => trainer.Step(batch), Nets.LongTrials ? 10000 : 1000);
      using (Data data = Data.Arrays(context, batch))
      using (Trainer drawing = Nets.Of(context, data)) Flat(() => drawing.Run(drawing.Step().Step + 5, report => true), 200);
    }
  }

  [Test]
  public void ErrorsLeaveMemoryFlat() { Flat(() => Assert.Throws<InvalidArgumentException>(() => new Recipe { Lr = -1 }), 1000); }

  /// <summary>Creates 15 objects of the library; disposes them, or leaves them to the garbage collector.</summary>
  [MethodImpl(MethodImplOptions.NoInlining)]
  private static void Make(bool dispose) {
    var array = new float[4, 4];
    var context = new Context(new ContextOptions { Threads = 1, Log = (level, area, text) => GC.KeepAlive(array) });
    var graph = new Graph(context);
    graph.Loss(Ops.Mean(graph.Linear("y", graph.Input("x", DType.F32, Graph.Batch, 4), 2)));
    var model = new Model(graph, 1);
    Data data = Data.Arrays(context, new Batch { { "x", array } });
    var recipe = new Recipe { Batch = 4 };
    var trainer = new Trainer(model, recipe, data);
    trainer.SetSchedule(k => trainer.IsDisposed ? 0 : 0.1);  // a closure that refers to the object that holds it
    var made = new List<Handle> { context, graph, model, data, recipe, trainer, Tensor.Wrap(context, array), new Tensor(context, DType.F32, 3), new Schedule(new { lr = 1 }),
                                  new LossScaler(context), new Predictor(model), new Gemm(context, 4, 4, 4), new Optimizer(context, new Batch { { "w", array } }),
                                  new Accumulator(context, 2, new float[4]), Data.RowsOf(context, 4, new[] { new Field("x", DType.F32, 4) }, (rows, arrays) => GC.KeepAlive(trainer)) };
    if (dispose)
      foreach (Handle one in made) one.Dispose();
  }

  [Test]
  public void ObjectsLeaveMemoryFlatAndNoHandle() {
    Nets.Collect();
    long handles = Library.LiveHandles();
    for (int i = 0; i < 20; ++i) Make(true);
    Assert.AreEqual(handles, Library.LiveHandles());  // disposed objects are freed at once
    int count = 0;
    Flat(() => {
      Make(count % 2 == 1);
      if (++count % 50 == 0) Nets.Collect();
    }, (Nets.LongTrials ? 100000 : 5000) / 15);
    Nets.Collect();
    Assert.LessOrEqual(Library.LiveHandles() - handles, 15);  // the stack may still refer to the last round
  }

  [Test]
  public void AnyOrderOfGoingIsFine() {
    foreach (int[] order in new[] { new[] { 0, 1, 2 }, new[] { 2, 1, 0 }, new[] { 1, 0, 2 }, new[] { 1, 2, 0 } }) {
      var context = new Context(new ContextOptions { Threads = 1 });
      Model model = Nets.Net(context);
      Data data = Data.Arrays(context, Nets.Sine());
      using (var recipe = new Recipe { Batch = Nets.Rows })
      using (var trainer = new Trainer(model, recipe, data)) {
        var objects = new Handle[] { context, model, data };
        foreach (int i in order) {
          objects[i].Dispose();
          Nets.Collect();
          trainer.Step();
        }
      }
    }
  }

  [Test]
  public void DisposingDuringACallOfAnotherThreadIsFine() {
    for (int round = 0; round < 20; ++round) {
      var context = new Context(new ContextOptions { Threads = 1 });
      Trainer trainer = Nets.Of(context, Data.Arrays(context, Nets.Sine()));
      ManualResetEventSlim inside = new ManualResetEventSlim(), disposed = new ManualResetEventSlim();
      Exception caught = null;
      long seen = 0;
      var thread = new Thread(() => {
        try {
          trainer.Run(50, report => {
            inside.Set();
            disposed.Wait();
            seen = report.Step;
            return true;
          });
          trainer.Step();
        } catch (Exception exception) { caught = exception; }
      }) { IsBackground = true };
      thread.Start();
      inside.Wait();
      trainer.Dispose();
      Assert.Throws<InvalidHandleException>(() => trainer.Digest());
      context.Dispose();
      disposed.Set();
      thread.Join();
      Assert.AreEqual(50, seen);  // the run was completed; the call after it found the object disposed
      Assert.IsInstanceOf<InvalidHandleException>(caught);
    }
    Nets.Collect();
  }

  [Test]
  public void CollectingAtEveryMomentBreaksNothing() {
    using (var context = new Context(new ContextOptions { Threads = 2 }))
    using (Data data = Data.RowsOf(context, Nets.Rows, new[] { new Field("x", DType.F32, 1), new Field("y", DType.F32, 1) }, (rows, arrays) => {
      GC.Collect(0);
      foreach (BorrowedArray array in arrays) array.Floats.Fill(rows.Length);
    }))
    using (Trainer trainer = Nets.Of(context, data))
    using (var ended = new ManualResetEventSlim()) {
      var collector = new Thread(() => {
        while (!ended.IsSet) GC.Collect();
      });
      collector.Start();
      try {
        trainer.SetSchedule(k => new double[] { 0.1 }[0]);
        trainer.Run(50, report => new object() != null);
        var optimizer = new Optimizer(context, new Batch { { "w", new float[100] } });
        for (int i = 0; i < 200; ++i) {
          var gradient = new float[100];
          gradient[99] = 1;
          Assert.AreEqual(1, optimizer.Step(gradient).Norm);
          Assert.AreEqual(1, Tensor.Wrap(context, gradient).ToArray<float>()[99]);
        }
        float moved = optimizer.State()["moment1.w"].ToArray<float>()[99];
        Assert.Greater(moved, 0.9f);
        GC.KeepAlive(optimizer);
      } finally {
        ended.Set();
        collector.Join();
      }
    }
  }
}
