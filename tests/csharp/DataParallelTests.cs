using System;
using System.Linq;
using System.Threading;
using NUnit.Framework;
using ScaleTrain;

/// <summary>Gradients exchanged between ranks while backward goes on, from C#.</summary>
[TestFixture]
public class DataParallelTests {
  private static void Act(Communicator own) {
    float[] w = Enumerable.Repeat((float)own.Rank, 5).ToArray(), v = new float[3];
    using (var parallel = new DataParallel(own, new Batch { { "w", w }, { "v", v } })) {
      parallel.NoSync(true);
      parallel.GradientReady(0);
      parallel.Synchronize();
      Assert.AreEqual(own.Rank, w[0]);
      parallel.NoSync(false);
      parallel.GradientReady(1);
      Assert.Throws<WrongStateException>(() => parallel.Synchronize());
      parallel.GradientReady(0);
      parallel.Synchronize();
    }
    Assert.AreEqual(1, w[4]);
    using (var parallel = new DataParallel(own, new Batch { { "w", w } }, ReduceOp.Sum, 4)) {
      parallel.GradientReady(0);
      parallel.Synchronize();
    }
    Assert.AreEqual(3, w[4]);
  }

  [Test]
  public void EachRankHasTheMeanOfAll() {
    var thrown = new Exception[3];
    using (var context = new Context()) {
      Thread[] threads = Communicator.Local(context, 3).Select((rank, i) => new Thread(() => {
        try { Act(rank); } catch (Exception problem) { thrown[i] = problem; }
      })).ToArray();
      foreach (Thread thread in threads) thread.Start();
      foreach (Thread thread in threads) thread.Join();
    }
    Assert.IsTrue(thrown.All(one => one == null), string.Join("\n", thrown.Where(one => one != null).Select(one => one.ToString())));
  }
}
