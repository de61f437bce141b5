using System.Collections.Generic;
using System.Linq;
using NUnit.Framework;
using ScaleTrain;

/// <summary>Which rows a rank reads next, from C#.</summary>
[TestFixture]
public class DistributedSamplerTests {
  [Test]
  public void RanksShareAnEpochAndOthersGoOn() {
    var read = new List<long>();
    for (int rank = 0; rank < 3; ++rank)
      using (var sampler = new DistributedSampler(23, rank, 3, 4)) {
        SampledRows taken = sampler.Next(5);
        Assert.AreEqual(15, taken.All);
        Assert.AreEqual(15, sampler.Cursor);
        read.AddRange(taken.Rows);
      }
    using (var alone = new DistributedSampler(23, seed: 4)) {
      alone.Cursor = 15;
      read.AddRange(alone.Next(100).Rows);
      Assert.AreEqual(0, alone.Next(100).All);
      alone.SetEpoch(0);
      Assert.AreEqual(read[0], alone.Next(1).Rows[0]);
    }
    CollectionAssert.AreEqual(Enumerable.Range(0, 23).Select(i => (long)i), read.OrderBy(row => row));
  }

  [Test]
  public void AnEpochsEndIsAsAsked() {
    var seconds = new Dictionary<LastRows, long[]> { { LastRows.Share, new long[] { 3, 4 } }, { LastRows.Drop, new long[0] }, { LastRows.Join, new long[] { 3, 4, 0 } } };
    foreach (LastRows last in seconds.Keys)
      using (var sampler = new DistributedSampler(5, shuffle: false, last: last)) {
        CollectionAssert.AreEqual(new long[] { 0, 1, 2 }, sampler.Next(3).Rows);
        CollectionAssert.AreEqual(seconds[last], sampler.Next(3).Rows);
        Assert.Throws<InvalidArgumentException>(() => sampler.Next(0));
      }
    Assert.Throws<InvalidArgumentException>(() => new DistributedSampler(5, 2, 2));
  }
}
