using NUnit.Framework;
using ScaleTrain;

/// <summary>Gradients that ranks exchange while backward is running, from C#.</summary>
[TestFixture]
public class DataParallelTests {
  [Test]
  public void EachRankHasTheMeanOrSumOfAll() {
    using (var context = new Context())
      Nets.OnEach(context, 3, own => {
        float[] w = Nets.Filled(5, own.Rank), v = new float[3];
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
      });
  }
}
