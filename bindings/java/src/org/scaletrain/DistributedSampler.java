package org.scaletrain;

import java.util.Arrays;
import org.scaletrain.internal.DistributedSamplerOptions;
import org.scaletrain.internal.NativeLibrary;
import org.scaletrain.internal.NextRows;

/**
 * Selects the rows that a rank reads next, for a program with its own training loop. The order is that of a trainer: each epoch is a
 * permutation that depends on (seed, epoch).
 */
public final class DistributedSampler extends Handle {
  private final org.scaletrain.internal.DistributedSampler raw;

  /** Shuffled; each row is read once per epoch. */
  public DistributedSampler(long rows, int rank, int size, long seed) {
    this(rows, rank, size, seed, true, LastRows.SHARE);
  }

  /** All arguments except {@code rank} must be the same on all ranks. */
  @OfC("st_distributed_sampler_create")
  public DistributedSampler(long rows, int rank, int size, long seed, boolean shuffle, LastRows last) {
    NativeLibrary.require();
    var options = new DistributedSamplerOptions();
    options.setRank(rank);
    options.setSize(size);
    options.setSeed(seed);
    options.setShuffle(shuffle);
    options.setLast(given(last, "DistributedSampler").number());
    raw = new org.scaletrain.internal.DistributedSampler(rows, options);
  }

  /**
   * The next {@code count} rows of this rank; fewer at the end of an epoch. If {@code all} is 0 the epoch has ended, and the next call begins
   * the next one.
   */
  @OfC("st_distributed_sampler_next")
  public SampledRows next(int count) {
    long[] rows = new long[Math.max(count, 0)];
    NextRows taken = new NextRows(raw, Array.of(rows));
    return new SampledRows(Arrays.copyOf(rows, (int) taken.own()), taken.all());
  }

  /** Moves to the first row of an epoch. */
  @OfC("st_distributed_sampler_set_epoch")
  public void setEpoch(long epoch) {
    raw.set_epoch(epoch);
  }

  /** Items that all ranks have taken since epoch 0, to store in a checkpoint. It does not depend on the number of ranks. */
  @OfC("st_distributed_sampler_cursor")
  public long cursor() {
    return raw.cursor();
  }

  /** Continues from the cursor of another sampler, with any number of ranks. */
  @OfC("st_distributed_sampler_set_cursor")
  public void setCursor(long cursor) {
    raw.set_cursor(cursor);
  }

  @Override
  @OfC("st_distributed_sampler_destroy")
  public void close() {
    raw.close();
  }
}
