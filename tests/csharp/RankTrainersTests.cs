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

  [Test]
  public void ShardedWeightsAndStateAreReadByCollectiveCalls() {
    var first = new float[2];
    using (var context = new Context())
      Nets.OnEach(context, 2, own => {
        using (Model model = Nets.Net(context))
        using (var recipe = new Recipe { Batch = MicroBatch, MicroBatches = 4, Lr = 0.01, Warmup = 0, Zero = 3, EmaDecay = 0.5 })
        using (var trainer = new Trainer(model, recipe, null, own)) {
          trainer.Step(RowsOf(own.Rank, 2));
          string name = model.Parameters[0].Name;
          var refused = Assert.Throws<WrongStateException>(() => model.Digest());
          StringAssert.Contains("Model.DigestCollective", refused.Message);
          StringAssert.Contains("(zero 3)", refused.Message);
          Assert.Throws<WrongStateException>(() => model.Clone());
          Assert.Throws<WrongStateException>(() => new Predictor(model));
          Assert.Throws<WrongStateException>(() => trainer.Digest());
          Assert.Throws<WrongStateException>(() => trainer.Gradient(name));
          Assert.Throws<WrongStateException>(() => trainer.Average(name));
          var stream = new System.IO.MemoryStream();
          Assert.Throws<WrongStateException>(() => model.Write(stream));
          model.WriteCollective(stream);
          stream.Position = 0;
          using (Model whole = model.CloneCollective())
          using (Model read = Nets.Net(context)) {
            read.Read(stream);
            Assert.AreEqual(model.DigestCollective(), read.Digest());
            Assert.AreEqual(whole.Digest(), read.Digest());
            Assert.AreEqual(whole.Get(name), model.GetCollective(name));
          }
          Assert.AreEqual(trainer.DigestCollective(), trainer.Digest());
          first[own.Rank] = trainer.GradientCollective(name)[0];
          Assert.AreEqual(model.GetCollective(name).Length, trainer.AverageCollective(name).Length);
          using (Predictor predictor = Predictor.Collective(model)) predictor.Refresh();
          return "";
        }
      });
    Assert.AreEqual(first[0], first[1]);
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
