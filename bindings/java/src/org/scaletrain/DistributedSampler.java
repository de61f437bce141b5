package org.scaletrain;

import java.util.Arrays;
import org.scaletrain.internal.DistributedSamplerOptions;
import org.scaletrain.internal.NativeLibrary;
import org.scaletrain.internal.NextRows;

/**
 * Which rows a rank reads next, for training loops of the program's own. The order is a trainer's: each epoch is a permutation of (seed,
 * epoch).
 */
public final class DistributedSampler extends Handle {
  private final org.scaletrain.internal.DistributedSampler raw;

  /** Shuffled, each row once an epoch. */
  public DistributedSampler(long rows, int rank, int size, long seed) {
    this(rows, rank, size, seed, true, LastRows.SHARE);
  }

  /** Alike on all ranks, but for rank. */
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
   * The next {@code count} rows of each rank; fewer at an epoch's end. Where {@code all} is 0 it is over, and the next call begins the next
   * one.
   */
  @OfC("st_distributed_sampler_next")
  public SampledRows next(int count) {
    long[] rows = new long[Math.max(count, 0)];
    NextRows taken = new NextRows(raw, Array.of(rows));
    return new SampledRows(Arrays.copyOf(rows, (int) taken.own()), taken.all());
  }

  /** To its first row. */
  @OfC("st_distributed_sampler_set_epoch")
  public void setEpoch(long epoch) {
    raw.set_epoch(epoch);
  }

  /** Items that all ranks have taken since epoch 0: what a checkpoint keeps. It says nothing of how many ranks there are. */
  @OfC("st_distributed_sampler_cursor")
  public long cursor() {
    return raw.cursor();
  }

  /** Where another one stood, of any number of ranks. */
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
