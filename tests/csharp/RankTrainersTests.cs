using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using NUnit.Framework;
using ScaleTrain;

/// <summary>Trainers that are each a rank, on a thread of its own.</summary>
[TestFixture]
public class RankTrainersTests {
  private const int MicroBatch = Nets.Rows / 4;

  private static Recipe Settings(double lr = 0.01) { return new Recipe { Batch = MicroBatch, MicroBatches = 4, Lr = lr, Warmup = 0 }; }

  /// <summary>The rows of the sine that are a rank's: micro-batches in turn.</summary>
  private static Batch RowsOf(int rank, int size) {
    float[] x = Enumerable.Range(0, Nets.Rows).Where(i => i / MicroBatch % size == rank).Select(i => -3.0f + 6.0f * i / (Nets.Rows - 1)).ToArray();
    return new Batch { { "x", x, x.Length, 1 }, { "y", x.Select(at => (float)Math.Sin(at)).ToArray(), x.Length, 1 } };
  }

  /// <summary>What each rank's act gives, by rank; what one throws is thrown here.</summary>
  private static T[] OnEach<T>(int size, Func<Context, Communicator, T> act) {
    using (var context = new Context()) {
      var made = new T[size];
      var thrown = new Exception[size];
      IReadOnlyList<Communicator> ranks = Communicator.Local(context, size);
      Thread[] threads = ranks.Select((own, i) => new Thread(() => {
        try { made[i] = act(context, own); } catch (Exception problem) { thrown[i] = problem; }
      })).ToArray();
      foreach (Thread thread in threads) thread.Start();
      foreach (Thread thread in threads) thread.Join();
      foreach (Communicator own in ranks) own.Dispose();
      foreach (Exception problem in thrown)
        if (problem != null) throw new Exception(problem.ToString(), problem);
      return made;
    }
  }

  private static string[] States(int size) {
    return OnEach(size, (context, own) => {
      using (var trainer = new Trainer(Nets.Net(context), Settings(), null, own)) {
        for (int i = 0; i < 3; ++i) trainer.Step(RowsOf(own.Rank, size));
        return trainer.Digest();
      }
    });
  }

  [Test]
  public void LeaveTheBitsOfOne() {
    string alone = States(1)[0];
    foreach (int size in new[] { 2, 3 })
      foreach (string state in States(size)) Assert.AreEqual(alone, state);
  }

  private static long HeldInParameters(Context context) {
    return context.Memory().Roles.Where(use => use.Role == "parameters").Sum(use => use.Bytes);
  }

  [Test]
  public void LateParametersAreMadeWhereTheyAreAskedFor() {
    using (var context = new Context())
    using (var late = new Context(new ContextOptions { LateParameters = true }))
    using (Model here = Nets.Net(context), model = Nets.Net(late)) {
      Assert.AreEqual(0, HeldInParameters(late));
      Assert.AreEqual(here.Digest(), model.Digest());
      Assert.Greater(HeldInParameters(late), 0);
    }
  }

  private static string[] Weights(int size, long zero) {
    return OnEach(size, (context, own) => {
      Recipe settings = Settings();
      settings.Zero = zero;
      using (Model model = Nets.Net(context))
      using (var trainer = new Trainer(model, settings, null, own)) {
        trainer.Step(RowsOf(own.Rank, size));
        return model.Digest();
      }
    });
  }

  [Test]
  public void WithPiecesOfAModelReadItTogether() {
    string alone = Weights(1, 0)[0];
    foreach (string weights in Weights(2, 3)) Assert.AreEqual(alone, weights);
  }

  [Test]
  public void OfTwoRunsAreRefusedOnBoth() {
    foreach (string told in OnEach(2, (context, own) => Assert.Throws<RankFailedException>(
                 () => new Trainer(Nets.Net(context), Settings(0.125 * (1 + own.Rank)), null, own)).Message))
      StringAssert.Contains("has lr 0.25, rank 0 has 0.125", told);
  }

  [Test]
  public void ABatchThatDoesNotFitOneRankIsToldToAll() {
    string[] told = OnEach(3, (context, own) => {
      using (var trainer = new Trainer(Nets.Net(context), Settings(), null, own)) {
        trainer.Step(RowsOf(own.Rank, 3));
        var wrong = new Batch { { "x", new float[4], 2, 2 }, { "y", new float[2], 2, 1 } };
        return Assert.Catch<ScaleTrainException>(() => trainer.Step(own.Rank == 1 ? wrong : RowsOf(own.Rank, 3))).Message;
      }
    });
    foreach (int rank in new[] { 0, 2 }) {
      StringAssert.Contains("rank 1", told[rank]);
      StringAssert.Contains("[2, 2]", told[rank]);
    }
  }
}
