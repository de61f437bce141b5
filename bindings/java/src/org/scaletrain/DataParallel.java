package org.scaletrain;

import org.scaletrain.internal.DataParallelOptions;
import org.scaletrain.internal.Unreachable;

/**
 * Data parallel by itself: gradients of the program's own backward become the sum or mean of all ranks', where they lie, while backward goes
 * on. A step is backward, with {@link #gradientReady} for each as it is made, and {@link #synchronize}. They are kept until it is closed:
 * direct arrays alone.
 */
public final class DataParallel extends Handle {
  private static final long USUAL_BUCKET = 26214400;

  private final org.scaletrain.internal.DataParallel raw;

  /** Of the mean, in buckets of the usual size. */
  public DataParallel(Communicator communicator, Batch gradients) {
    this(communicator, gradients, ReduceOp.MEAN, USUAL_BUCKET);
  }

  /**
   * Made by all ranks at once; gradients in the order of the forward. bucketBytes: of gradients that are exchanged together, which changes
   * speed, no bit.
   */
  @OfC("st_data_parallel_create")
  public DataParallel(Communicator communicator, Batch gradients, ReduceOp op, long bucketBytes) {
    Object[] held = given(gradients, "DataParallel").held("DataParallel").pairs();
    var options = new DataParallelOptions();
    options.setOp(given(op, "DataParallel").number());
    options.setBucket_bytes(bucketBytes);
    var made = new org.scaletrain.internal.DataParallel(given(communicator, "DataParallel").raw, held, options);
    made.keeps = new Object[] {communicator.raw, held};
    Unreachable.then(this, made::close);  // keeps them until what is under way has ended, whoever lets go of this
    raw = made;
  }

  /** Backward has made gradient i, from 0 on: its exchange may begin. */
  @OfC("st_data_parallel_gradient_ready")
  public void gradientReady(long i) {
    raw.gradient_ready(i);
  }

  /** Returns when all gradients hold what all ranks have together. */
  @OfC("st_data_parallel_synchronize")
  public void synchronize() {
    raw.synchronize();
  }

  /** While on, nothing is exchanged. */
  @OfC("st_data_parallel_no_sync")
  public void noSync(boolean on) {
    raw.no_sync(on);
  }

  @Override
  @OfC("st_data_parallel_destroy")
  public void close() {
    raw.close();
    raw.keeps = null;
  }
}
