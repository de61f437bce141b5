using System.Collections.Generic;
using System.Linq;
using NUnit.Framework;
using ScaleTrain;

/// <summary>The rows that a rank reads next, from C#.</summary>
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
    using (var alone = new DistributedSampler(23, seed: 4) { Cursor = 15 }) {
      read.AddRange(alone.Next(100).Rows);
      alone.SetEpoch(0);
      Assert.AreEqual(0, alone.Cursor);
    }
    CollectionAssert.AreEqual(Enumerable.Range(0, 23).Select(i => (long)i), read.OrderBy(row => row));
  }

  [TestCase(LastRows.Share, new long[] { 3, 4 })]
  [TestCase(LastRows.Drop, new long[0])]
  [TestCase(LastRows.Join, new long[] { 3, 4, 0 })]
  public void AnEpochsEndIsAsAsked(LastRows last, long[] second) {
    using (var sampler = new DistributedSampler(5, shuffle: false, last: last)) {
      CollectionAssert.AreEqual(new long[] { 0, 1, 2 }, sampler.Next(3).Rows);
      CollectionAssert.AreEqual(second, sampler.Next(3).Rows);
      Assert.Throws<InvalidArgumentException>(() => sampler.Next(0));
    }
  }
}
