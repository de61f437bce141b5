using System;
using System.Collections.Concurrent;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using NUnit.Framework;
using ScaleTrain;

/// <summary>An object serves one call at a time and throws otherwise. Objects may be disposed while calls on other threads run.</summary>
[TestFixture]
public class ThreadsTests : OneThreadTests {
  [Test]
  public void AnObjectThatIsBusySaysSo() {
    using (Trainer trainer = Nets.Of(context, Data.Arrays(context, Nets.Sine())))
    using (var inside = new ManualResetEventSlim())
    using (var goOn = new ManualResetEventSlim()) {
      Task run = Task.Run(() => trainer.Run(10, report => {
        inside.Set();
        Assert.True(goOn.Wait(30000));
        return false;
      }));
      Assert.True(inside.Wait(30000));
      Assert.Throws<BusyException>(() => trainer.Step());
      Assert.Throws<BusyException>(() => trainer.Digest());
      Assert.Throws<BusyException>(() => trainer.Gradient("hidden.0.weight", new float[1, 8]));
      goOn.Set();
      run.Wait();
      Assert.AreEqual(2, trainer.Step().Step);
    }
  }

  [Test]
  public void ACallFromItsOwnCallbackIsBusy() {
    using (Trainer trainer = Nets.Of(context)) {
      trainer.SetSchedule(k => trainer.Step(Nets.Sine()).Lr);
      Assert.Throws<BusyException>(() => trainer.Step(Nets.Sine()));
      trainer.SetSchedule(null);
      Assert.AreEqual(1, trainer.Step(Nets.Sine()).Step);
    }
  }

  [Test]
  public void CancelEndsTheCallOfAnotherThread() {
    using (Trainer trainer = Nets.Of(context, Data.Arrays(context, Nets.Sine()))) {
      foreach (Action cancel in new Action[] { trainer.Cancel, context.Cancel }) {
        Task run = Task.Run(() => Assert.Throws<CancelledException>(() => trainer.Run(1000000000)));
        while (!run.Wait(5)) cancel();
      }
    }
  }

  [Test]
  public void StopEndsARunWithAWholeStep() {
    using (Trainer trainer = Nets.Of(context, Data.Arrays(context, Nets.Sine())))
    using (var inside = new ManualResetEventSlim()) {
      Task run = Task.Run(() => trainer.Run(1000000000, report => {
        inside.Set();
        return true;
      }));
      Assert.True(inside.Wait(30000));
      trainer.Stop();
      Assert.True(run.Wait(30000));
      Assert.Greater(trainer.Step().Step, 1);
    }
  }

  [Test]
  public void PredictorsServeManyThreads() {
    using (Model model = Nets.Net(context))
    using (var recipe = new Recipe { Batch = Nets.Rows })
    using (var trainer = new Trainer(model, recipe))
    using (var predictor = new Predictor(model)) {
      Batch batch = Nets.Sine();
      float[] expected = Answer(predictor, batch);
      Task<bool>[] askers = Enumerable.Range(0, 4).Select(i => Task.Run(() => Enumerable.Range(0, 200).All(turn => Answer(predictor, batch).SequenceEqual(expected)))).ToArray();
      for (int i = 0; i < 50; ++i) trainer.Step(batch);
      Assert.True(askers.All(asker => asker.Result));
      predictor.Refresh();
      Assert.AreNotEqual(expected, Answer(predictor, batch));
    }
  }

  /// <summary>Three threads make calls on an object that a fourth disposes. Each call succeeds, or throws an exception that names the cause.</summary>
  [Test]
  public void DisposeMayRaceCallsOfAnyThread() {
    Nets.Collect();
    long handles = Library.LiveHandles();
    int rounds = Nets.LongTrials ? 5000 : 300, worked = 0, refused = 0;
    var others = new ConcurrentBag<Exception>();
    Batch batch = Nets.Sine(), answers = new Batch { { "prediction", new float[Nets.Rows, 1] } };
    for (int round = 0; round < rounds; ++round) {
      Model model = Nets.Net(context);
      var recipe = new Recipe { Batch = Nets.Rows };
      var trainer = new Trainer(model, recipe);
      var predictor = new Predictor(model);
      var scaler = new LossScaler(context);
      Action[] calls = { () => trainer.Step(batch), () => trainer.Digest(), () => predictor.Run(batch, answers), () => predictor.Refresh(), () => model.Digest(), () => { double now = scaler.Scale; } };
      using (var start = new Barrier(4)) {
        Task[] callers = Enumerable.Range(0, 3).Select(i => Task.Run(() => {
          start.SignalAndWait();
          for (int k = 0; k < 12; ++k)
            try {
              calls[(i + k) % calls.Length]();
              Interlocked.Increment(ref worked);
            } catch (InvalidHandleException) { Interlocked.Increment(ref refused); } catch (BusyException) {} catch (Exception other) { others.Add(other); }
        })).ToArray();
        start.SignalAndWait();
        foreach (IDisposable one in new IDisposable[] { recipe, trainer, model, predictor, scaler }) {
          if (round % 3 != 0) Thread.SpinWait(round % 7 * 100);
          one.Dispose();
        }
        Task.WaitAll(callers);
      }
    }
    Assert.AreEqual(new Exception[0], others.Take(3));
    Assert.Greater(worked, rounds / 10);
    Assert.Greater(refused, rounds / 10);
    Nets.Collect();
    Assert.LessOrEqual(Library.LiveHandles(), handles);
  }

  private static float[] Answer(Predictor predictor, Batch batch) {
    var answer = new float[Nets.Rows];
    predictor.Run(new Batch { { "x", batch["x"] } }, new Batch { { "prediction", answer, Nets.Rows, 1 } });
    return answer;
  }
}
