using System;
using System.Collections.Generic;
using System.IO;
using System.Threading;
using System.Threading.Tasks;
using NUnit.Framework;
using ScaleTrain;

/// <summary>Tasks: steps, runs and files in the background; tokens cancel them, IProgress receives reports.</summary>
[TestFixture]
public class AsyncTests : OneThreadTests {
  /// <summary>Receives reports on the reporting thread. .NET's own Progress posts them, and may change their order.</summary>
  private sealed class Hearing : IProgress<StepReport> {
    internal readonly List<StepReport> Reports = new List<StepReport>();
    internal Action<StepReport> Then;

    public void Report(StepReport report) {
      Reports.Add(report);
      Then?.Invoke(report);
    }
  }

  [Test]
  public void ARunAsATaskReportsEachStep() {
    using (Trainer trainer = Nets.Of(context, Data.Arrays(context, Nets.Sine()))) {
      var hearing = new Hearing();
      int stepped = 0;
      trainer.Stepped += report => ++stepped;
      Awaited(trainer.RunAsync(20, hearing));
      Assert.AreEqual(20, hearing.Reports.Count);
      Assert.AreEqual(20, hearing.Reports[19].Step);
      Assert.AreEqual(20, stepped);
      Assert.Less(hearing.Reports[19].Loss, hearing.Reports[0].Loss);
    }
  }

  [Test]
  public void ATokenCancelsARunWithinAStep() {
    using (Trainer trainer = Nets.Of(context, Data.Arrays(context, Nets.Sine())))
    using (var source = new CancellationTokenSource()) {
      Task run = trainer.RunAsync(1000000000, new Hearing { Then = report => { if (report.Step == 7) source.Cancel(); } }, source.Token);
      var ended = Assert.Throws<OperationCanceledException>(() => Awaited(run));
      Assert.True(run.IsCanceled);
      Assert.AreEqual(source.Token, ended.CancellationToken);
      Assert.AreEqual(8, trainer.Step().Step);  // the state is that of the last finished step, and no cancel is pending
    }
  }

  [Test]
  public void ATokenOfAnotherThreadCancelsALongStep() {
    using (Model model = Model.Builtin(context, "mlp", 1, new { inputs = 512, hidden = new[] { 2048, 2048 }, outputs = 1 }))
    using (var recipe = new Recipe { Batch = 4096 })
    using (var trainer = new Trainer(model, recipe))
    using (var source = new CancellationTokenSource(20)) {
      var batch = new Batch { { "x", new float[4096, 512] }, { "y", new float[4096, 1] } };
      Task<StepReport> step = trainer.StepAsync(batch, source.Token);  // would take a second or more
      Assert.Catch<OperationCanceledException>(() => Awaited(step));
      Assert.True(step.IsCanceled);
    }
  }

  [Test]
  public void ATokenThatWasCancelledBeforeStartsNothing() {
    using (Trainer trainer = Nets.Of(context)) {
      Task<StepReport> step = trainer.StepAsync(Nets.Sine(), new CancellationToken(true));
      Assert.Throws<TaskCanceledException>(() => Awaited(step));
      Assert.AreEqual(1, trainer.Step(Nets.Sine()).Step);
    }
  }

  /// <summary>Whenever a cancel comes, the task is done or cancelled, and the next step is not affected.</summary>
  [Test]
  public void ACancelAtAnyMomentLeavesTheTrainerWhole() {
    using (Trainer trainer = Nets.Of(context)) {
      Batch batch = Nets.Sine();
      long steps = 0;
      int cancelled = 0;
      for (int i = 0; i < 300; ++i)
        using (var source = new CancellationTokenSource()) {
          Task<StepReport> step = trainer.StepAsync(batch, source.Token);
          Thread.SpinWait(i * 20);
          source.Cancel();
          try {
            steps = Awaited(step).Step;
          } catch (OperationCanceledException) { ++cancelled; }
          Assert.AreEqual(steps + 1, steps = trainer.Step(batch).Step);
        }
      Assert.Greater(cancelled, 0);
    }
  }

  [Test]
  public void WhatProgressThrowsArrivesAtTheTask() {
    using (Trainer trainer = Nets.Of(context, Data.Arrays(context, Nets.Sine()))) {
      var mine = new InvalidDataException("enough");
      Task run = trainer.RunAsync(10, new Hearing { Then = report => { if (report.Step == 3) throw mine; } });
      Assert.AreSame(mine, Assert.Throws<InvalidDataException>(() => Awaited(run)));
      Assert.AreEqual(4, trainer.Step().Step);
    }
  }

  [Test]
  public void WeightsAreWrittenAsTheyWereWhileTheProgramGoesOn() {
    string path = Path.GetTempFileName();
    try {
      using (Model model = Nets.Net(context), copy = Nets.Net(context, 8))
      using (var recipe = new Recipe { Batch = Nets.Rows })
      using (var trainer = new Trainer(model, recipe)) {
        trainer.Step(Nets.Sine());
        string then = model.Digest();
        Task written = model.WriteFileAsync(path);
        for (int i = 0; i < 20; ++i) trainer.Step(Nets.Sine());
        Awaited(written);
        copy.ReadFile(path);
        Assert.AreEqual(then, copy.Digest());
        Assert.AreNotEqual(then, model.Digest());
        var failed = Assert.Throws<NotFoundException>(() => Awaited(model.WriteFileAsync("/no/such/folder/weights")));
        StringAssert.Contains("/no/such/folder", failed.Message);
      }
    } finally { File.Delete(path); }
  }

  /// <summary>Waits like await: throws the exception itself.</summary>
  private static void Awaited(Task task) { task.GetAwaiter().GetResult(); }
  private static T Awaited<T>(Task<T> task) { return task.GetAwaiter().GetResult(); }
}
