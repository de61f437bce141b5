using System;
using System.Linq;
using System.Threading;
using NUnit.Framework;
using ScaleTrain;

/// <summary>An optimizer in shards on ranks, from C#.</summary>
[TestFixture]
public class ShardedOptimizerTests {
  private static void OnRanks(int count, Action<Context, Communicator> act) {
    var thrown = new Exception[count];
    using (var context = new Context()) {
      Thread[] threads = Communicator.Local(context, count).Select((rank, i) => new Thread(() => {
        try { act(context, rank); } catch (Exception problem) { thrown[i] = problem; }
      })).ToArray();
      foreach (Thread thread in threads) thread.Start();
      foreach (Thread thread in threads) thread.Join();
    }
    Assert.IsTrue(thrown.All(one => one == null), string.Join("\n", thrown.Where(one => one != null).Select(one => one.ToString())));
  }

  private static float[] Filled(int size, float value) { return Enumerable.Repeat(value, size).ToArray(); }

  [Test]
  public void EachRankHasTheUpdateByTheMeanOfAll() {
    foreach (int stage in new[] { 1, 2 })
      OnRanks(3, (context, own) => {
        float[] w = Filled(5, 1);
        var half = new ushort[5];
        using (var sharded = new ShardedOptimizer(own, new Batch { { "w", w } }, new { optimizer = "sgd", lr = 0.5 }, stage)) {
          Assert.AreEqual(1, sharded.Step(Filled(5, own.Rank)).Step);
          Assert.AreEqual(0.5F, w[4]);
          sharded.KeepCopies(View.Bf16(half));
          sharded.Set("lr", 1);
          if (stage == 2) {
            sharded.GradientReady(0, Filled(5, 1));
            sharded.Step();
          } else {
            Assert.Throws<WrongStateException>(() => sharded.GradientReady(0, Filled(5, 1)));
            sharded.Step(Filled(5, 1));
          }
          Assert.AreEqual(-0.5F, w[0]);
          Assert.AreEqual(0xBF00, half[4]);
        }
      });
  }

  [Test]
  public void MastersInPiecesAreWholeWhereTheStateIsGathered() {
    OnRanks(2, (context, own) => {
      float[] w = Filled(2048, 1);
      var half = new ushort[2048];
      using (var sharded = new ShardedOptimizer(own, new Batch { { "w", w } }, new { optimizer = "sgd", lr = 0.5 }, mastersInPieces: true)) {
        sharded.KeepCopies(View.Bf16(half));
        sharded.Step(Filled(2048, 1));
        Assert.IsTrue(half.All(one => one == 0x3F00));
        Assert.AreEqual(1024, w.Count(one => one == 0.5F));
        sharded.GatherState();
        Assert.IsTrue(w.All(one => one == 0.5F));
      }
    });
  }

  [Test]
  public void OneRanksOverflowSkipsOnAllAndItsStateGoesOn() {
    OnRanks(2, (context, own) => {
      float[] w = Filled(4, 1);
      using (var sharded = new ShardedOptimizer(own, new Batch { { "w", w } }, new { optimizer = "lion" }))
      using (var scaler = new LossScaler(context)) {
        float[] g = Filled(4, (float)scaler.Scale);
        if (own.Rank == 1) g[3] = float.PositiveInfinity;
        Assert.IsTrue(sharded.Step(scaler, g).Skipped);
        Assert.IsTrue(scaler.Update());
        Assert.AreEqual(1, w[0]);
        sharded.Step(Filled(4, 1));
        Assert.AreEqual(own.Rank == 0 ? 2 : 0, sharded.GatherState(0).Count());
        Batch state = sharded.GatherState();
        Assert.AreEqual(new[] { "step", "moment1.w" }, state.Select(one => one.Key).ToArray());
        sharded.LoadState(state);
        Assert.AreEqual(2, sharded.Step(Filled(4, 1)).Step);
      }
    });
  }
}
