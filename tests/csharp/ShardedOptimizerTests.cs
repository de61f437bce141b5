using System.Linq;
using NUnit.Framework;
using ScaleTrain;

/// <summary>A sharded optimizer, from C#.</summary>
[TestFixture]
public class ShardedOptimizerTests {
  [TestCase(1)]
  [TestCase(2)]
  public void EachRankHasTheUpdateByTheMeanOfAll(int stage) {
    using (var context = new Context())
      Nets.OnEach(context, 2, own => {
        float[] w = Nets.Filled(2048, 1), ones = Nets.Filled(2048, 1);
        var half = new ushort[2048];
        using (var sharded = new ShardedOptimizer(own, new Batch { { "w", w } }, new { optimizer = "sgd", lr = 0.5 }, stage, shardMasters: true)) {
          sharded.KeepCopies(View.Bf16(half));
          Assert.AreEqual(1, sharded.Step(Nets.Filled(2048, 2 * own.Rank)).Step);
          Assert.IsTrue(half.All(one => one == 0x3F00));
          Assert.AreEqual(1024, w.Count(one => one == 0.5F));  // each rank has only its own shard of the master weights
          sharded.Set("lr", 1);
          if (stage == 2) {
            sharded.GradientReady(0, ones);
            sharded.Step();
          } else {
            Assert.Throws<WrongStateException>(() => sharded.GradientReady(0, ones));
            sharded.Step(ones);
          }
          sharded.GatherState();
          Assert.IsTrue(w.All(one => one == -0.5F));
          Assert.AreEqual(0xBF00, half[4]);
        }
      });
  }

  [Test]
  public void OneRanksOverflowSkipsOnAllAndItsStateGoesOn() {
    using (var context = new Context())
      Nets.OnEach(context, 2, own => {
        float[] w = Nets.Filled(4, 1);
        using (var sharded = new ShardedOptimizer(own, new Batch { { "w", w } }, new { optimizer = "lion" }))
        using (var scaler = new LossScaler(context)) {
          var scale = (float)scaler.Scale;
          Assert.IsTrue(sharded.Step(scaler, Nets.Filled(4, own.Rank == 1 ? float.PositiveInfinity : scale)).Skipped);
          Assert.IsTrue(scaler.Update());
          Assert.AreEqual(1, w[0]);
          sharded.Step(Nets.Filled(4, 1));
          Assert.AreEqual(own.Rank == 0 ? 2 : 0, sharded.GatherState(0).Count());
          Batch state = sharded.GatherState();
          Assert.AreEqual(new[] { "step", "moment1.w" }, state.Select(one => one.Key).ToArray());
          sharded.LoadState(state);
          Assert.AreEqual(2, sharded.Step(Nets.Filled(4, 1)).Step);
        }
      });
  }
}
