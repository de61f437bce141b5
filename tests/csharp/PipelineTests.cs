using System;
using System.Collections.Generic;
using System.Linq;
using NUnit.Framework;
using ScaleTrain;

/// <summary>A pipeline of the program's own stages, from C#.</summary>
[TestFixture]
public class PipelineTests {
  private const int Size = 5;

  /// <summary>y = w x + part, elementwise; the last part's loss is half the sum of (y - 1)^2.</summary>
  private sealed class Parts {
    internal readonly float[] Sums;  // gradients of the weights, by chunk
    private readonly Dictionary<int, float[]> last = new Dictionary<int, float[]>();

    internal Parts(int chunks) { Sums = new float[chunks]; }

    internal Pipeline On(Communicator own, string schedule, Action<StageWork> before = null) {
      OpType[] types = Enumerable.Repeat(new OpType(DType.F32, Size), Sums.Length).ToArray();
      return new Pipeline(own, schedule, types, types, work => {
        before?.Invoke(work);
        Forward(work);
      }, BackwardInput, BackwardWeight);
    }

    private static float Weight(StageWork work) { return 0.9f + 0.03f * work.Part; }

    private static float[] Input(StageWork work) {
      return work.Input == null ? Enumerable.Range(0, Size).Select(i => 0.1f * (i + 3 * work.MicroBatch)).ToArray() : work.Input.ToArray<float>();
    }

    private float[] OutputGradient(StageWork work) {
      return work.OutputGradient == null ? last[work.MicroBatch].Select(y => y - 1).ToArray() : work.OutputGradient.ToArray<float>();
    }

    private void Forward(StageWork work) {
      float[] y = Input(work).Select(x => Weight(work) * x + work.Part).ToArray();
      if (work.Output == null) last[work.MicroBatch] = y;
      else y.CopyTo(work.Output.Floats);
    }

    private void BackwardInput(StageWork work) {
      if (work.InputGradient != null) OutputGradient(work).Select(dy => Weight(work) * dy).ToArray().CopyTo(work.InputGradient.Floats);
    }

    private void BackwardWeight(StageWork work) {
      float[] x = Input(work), dy = OutputGradient(work);
      for (int i = 0; i < Size; ++i) Sums[work.Chunk] += x[i] * dy[i];
    }
  }

  /// <summary>The sums of each rank. Only the pipeline refers to its functions.</summary>
  private static float[][] Sums(Context context, int ranks, string schedule, int chunks) {
    return Nets.OnEach(context, ranks, own => {
      var parts = new Parts(chunks);
      using (Pipeline pipeline = parts.On(own, schedule)) {
        if (ranks == 1) Nets.Collect();
        pipeline.Run(3);
      }
      return parts.Sums;
    });
  }

  [Test]
  public void SchedulesHaveTheSumsOfOneRank() {
    using (var context = new Context()) {
      float[] one = Sums(context, 1, "interleaved", 4)[0];  // by part
      Assert.AreNotEqual(0, one[0]);
      Assert.AreEqual(new[] { new[] { one[0], one[2] }, new[] { one[1], one[3] } }, Sums(context, 2, "interleaved", 2));
      Assert.AreEqual(new[] { new[] { one[0], one[3] }, new[] { one[1], one[2] } }, Sums(context, 2, "zb-v", 2));
    }
  }

  [Test]
  public void ArraysAreValidDuringTheirCall() {
    using (var context = new Context())
      Nets.OnEach(context, 2, own => {
        var seen = new List<BorrowedArray>();
        Pipeline pipeline = new Parts(1).On(own, "1f1b", work => {
          Assert.IsNull(work.OutputGradient);
          Assert.AreEqual(own.Rank == 0, work.Input == null);
          Assert.AreEqual(own.Rank, work.Part);
          BorrowedArray given = own.Rank == 0 ? work.Output : work.Input;
          Assert.AreEqual(own.Rank == 1, given.IsReadOnly);
          Assert.AreEqual(new long[] { Size }, given.Dims);
          seen.Add(given);
          Assert.Throws<BusyException>(() => own.Barrier());
        });
        StringAssert.Contains("\"in_flight\":[2,1]", pipeline.Schedule(4));
        pipeline.Run(4);
        Assert.AreEqual(4, seen.Count);
        Assert.Throws<InvalidHandleException>(() => seen[0].ToArray<float>());
        StringAssert.Contains("got 0", Assert.Throws<InvalidArgumentException>(() => pipeline.Schedule(0)).Message);
        pipeline.Dispose();
        pipeline.Dispose();
        Assert.Throws<InvalidHandleException>(() => pipeline.Run(1));
        Assert.Throws<InvalidHandleException>(() => pipeline.Schedule(1));
        Assert.Throws<InvalidArgumentException>(() => new Pipeline(own, "1f1b", new OpType[1], new OpType[1], null, work => {}));
      });
  }

  [Test]
  public void AnExceptionOfOneEndsAll() {
    var gone = new InvalidOperationException("the sensor is gone");
    using (var context = new Context())
      Nets.OnEach(context, 2, own => {
        using (Pipeline pipeline = new Parts(1).On(own, "zb-h1", work => {
          if (own.Rank == 1 && work.MicroBatch == 1) throw gone;
        })) {
          Exception thrown = Assert.Catch(() => pipeline.Run(3));
          if (own.Rank == 1) Assert.AreSame(gone, thrown);
          else StringAssert.Contains("the sensor is gone", ((RankFailedException)thrown).Message);
          Assert.Throws<RankFailedException>(() => own.Barrier());
        }
      });
  }
}
