using System;
using System.Linq;
using NUnit.Framework;
using ScaleTrain;

/// <summary>Trainers that are ranks of a group, each on its own thread.</summary>
[TestFixture]
public class RankTrainersTests {
  private const int MicroBatch = Nets.Rows / 4;

  /// <summary>A rank's rows of the sine: the ranks take micro-batches in turn.</summary>
  private static Batch RowsOf(int rank, int size) {
    float[] x = Enumerable.Range(0, Nets.Rows).Where(i => i / MicroBatch % size == rank).Select(i => -3.0f + 6.0f * i / (Nets.Rows - 1)).ToArray();
    return new Batch { { "x", x, x.Length, 1 }, { "y", x.Select(at => (float)Math.Sin(at)).ToArray(), x.Length, 1 } };
  }

  private static string[] Weights(int size, long zero) {
    using (var context = new Context(new ContextOptions { LateParameters = true }))
      return Nets.OnEach(context, size, own => {
        using (Model model = Nets.Net(context))
        using (var recipe = new Recipe { Batch = MicroBatch, MicroBatches = 4, Lr = 0.01, Warmup = 0, Zero = zero })
        using (var trainer = new Trainer(model, recipe, null, own)) {
          for (int i = 0; i < 3; ++i) trainer.Step(RowsOf(own.Rank, size));
          return model.Digest();
        }
      });
  }

  [TestCase(2, 0)]
  [TestCase(3, 0)]
  [TestCase(2, 3)]
  public void LeaveTheBitsOfOne(int size, int zero) {
    Assert.AreEqual(Enumerable.Repeat(Weights(1, 0)[0], size), Weights(size, zero));
  }

  private static long HeldInParameters(Context context) {
    return context.Memory().Roles.Where(use => use.Role == "parameters").Sum(use => use.Bytes);
  }

  [Test]
  public void LateParametersAreMadeWhereTheyAreAskedFor() {
    using (var late = new Context(new ContextOptions { LateParameters = true }))
    using (Model model = Nets.Net(late)) {
      Assert.AreEqual(0, HeldInParameters(late));
      model.Digest();
      Assert.Greater(HeldInParameters(late), 0);
    }
  }
}
