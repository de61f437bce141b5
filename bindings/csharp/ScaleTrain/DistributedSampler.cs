using System;

namespace ScaleTrain {

/// <summary>What becomes of an epoch's last rows, where all ranks together would take more.</summary>
public enum LastRows {
  /// <summary>Each row once: they are dealt out evenly, so some ranks have fewer, or none.</summary>
  Share = 1,
  /// <summary>No rank gets them.</summary>
  Drop = 2,
  /// <summary>Epochs have no end: the next one's first rows follow, as in a trainer's data.</summary>
  Join = 3
}

/// <summary>What a <see cref="DistributedSampler"/> gives at a time.</summary>
public struct SampledRows {
  /// <summary>Of this rank.</summary>
  public long[] Rows { get; }
  /// <summary>How many there are on all ranks together; 0: the epoch has ended.</summary>
  public long All { get; }

  internal SampledRows(long[] rows, long all) {
    Rows = rows;
    All = all;
  }
}

/// <summary>Which rows a rank reads next, for training loops of the program's own. The order is a trainer's: each epoch is a permutation of
/// (seed, epoch).</summary>
public sealed class DistributedSampler : Handle {
  private readonly Native.DistributedSampler native;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>Alike on all ranks, but for rank.</summary>
  [OfC("st_distributed_sampler_create")]
  public DistributedSampler(long rows, int rank = 0, int size = 1, long seed = 0, bool shuffle = true, LastRows last = LastRows.Share) {
    Loader.Require();
    var options = new Native.DistributedSamplerOptions { rank = rank, size = size, seed = seed, shuffle = shuffle, last = (int)last };
    try { native = new Native.DistributedSampler(rows, options); } finally { options.handle.Dispose(); }
  }

  /// <summary>The next <paramref name="count"/> rows of each rank; fewer at an epoch's end. Where All is 0 it is over, and the next call begins the
  /// next one.</summary>
  [OfC("st_distributed_sampler_next")]
  public SampledRows Next(int count) {
    var rows = new long[Math.Max(count, 0)];
    using (Pins pins = Pins.Borrow(rows, "rows")) {
      var taken = new Native.NextRows(native, pins.First);
      try {
        Array.Resize(ref rows, (int)taken.own());
        return new SampledRows(rows, taken.all());
      } finally { taken.handle.Dispose(); }
    }
  }

  /// <summary>To its first row.</summary>
  [OfC("st_distributed_sampler_set_epoch")]
  public void SetEpoch(long epoch) { native.set_epoch(epoch); }

  /// <summary>Items that all ranks have taken since epoch 0: what a checkpoint keeps. It says nothing of how many ranks there are.</summary>
  [OfC("st_distributed_sampler_cursor", "st_distributed_sampler_set_cursor")]
  public long Cursor { get { return native.cursor(); } set { native.set_cursor(value); } }
}

}
