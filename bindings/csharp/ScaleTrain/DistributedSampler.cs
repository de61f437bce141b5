using System;

namespace ScaleTrain {

/// <summary>How an epoch's last rows are treated when fewer remain than all ranks together would take.</summary>
public enum LastRows {
  /// <summary>Shares them evenly, so that each row is read once; some ranks get fewer rows or none.</summary>
  Share = 1,
  /// <summary>Skips them on all ranks.</summary>
  Drop = 2,
  /// <summary>Continues with the first rows of the next epoch, as a trainer's data does; epochs have no end.</summary>
  Join = 3
}

/// <summary>The result of <see cref="DistributedSampler.Next"/>.</summary>
public struct SampledRows {
  /// <summary>The rows of this rank.</summary>
  public long[] Rows { get; }
  /// <summary>Number of rows on all ranks together; 0 when the epoch has ended.</summary>
  public long All { get; }

  internal SampledRows(long[] rows, long all) {
    Rows = rows;
    All = all;
  }
}

/// <summary>Selects the rows that a rank reads next, for a program with its own training loop. The order is that of a trainer: each epoch is a
/// permutation that depends on (seed, epoch).</summary>
public sealed class DistributedSampler : Handle {
  private readonly Native.DistributedSampler native;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>All arguments except rank must be the same on all ranks.</summary>
  [OfC("st_distributed_sampler_create")]
  public DistributedSampler(long rows, int rank = 0, int size = 1, long seed = 0, bool shuffle = true, LastRows last = LastRows.Share) {
    Loader.Require();
    var options = new Native.DistributedSamplerOptions { rank = rank, size = size, seed = seed, shuffle = shuffle, last = (int)last };
    try { native = new Native.DistributedSampler(rows, options); } finally { options.handle.Dispose(); }
  }

  /// <summary>The next <paramref name="count"/> rows of this rank; fewer at the end of an epoch. If All is 0 the epoch has ended, and the next
  /// call begins the next one.</summary>
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

  /// <summary>Moves to the first row of an epoch.</summary>
  [OfC("st_distributed_sampler_set_epoch")]
  public void SetEpoch(long epoch) { native.set_epoch(epoch); }

  /// <summary>Items that all ranks have taken since epoch 0, to store in a checkpoint. It does not depend on the number of ranks.</summary>
  [OfC("st_distributed_sampler_cursor", "st_distributed_sampler_set_cursor")]
  public long Cursor { get { return native.cursor(); } set { native.set_cursor(value); } }
}

}
