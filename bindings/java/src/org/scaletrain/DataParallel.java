package org.scaletrain;

import org.scaletrain.internal.DataParallelOptions;
import org.scaletrain.internal.Unreachable;

/**
 * Data parallelism as a separate part: replaces the gradients of the program's own backward, in place, by their sum or mean over all ranks,
 * while backward is still running. In a step, call {@link #gradientReady} for each gradient as backward produces it, then
 * {@link #synchronize}. The gradients must be direct arrays and are kept until this is closed.
 */
public final class DataParallel extends Handle {
  private static final long USUAL_BUCKET = 26214400;

  private final org.scaletrain.internal.DataParallel raw;

  /** Computes the mean, with the default bucket size. */
  public DataParallel(Communicator communicator, Batch gradients) {
    this(communicator, gradients, ReduceOp.MEAN, USUAL_BUCKET);
  }

  /**
   * All ranks must create it together. {@code gradients} are in forward order. {@code bucketBytes} is the size of the gradients that are
   * exchanged together; it affects the speed, not the result.
   */
  @OfC("st_data_parallel_create")
  public DataParallel(Communicator communicator, Batch gradients, ReduceOp op, long bucketBytes) {
    Object[] held = given(gradients, "DataParallel").held("DataParallel").pairs();
    var options = new DataParallelOptions();
    options.setOp(given(op, "DataParallel").number());
    options.setBucket_bytes(bucketBytes);
    var made = new org.scaletrain.internal.DataParallel(given(communicator, "DataParallel").raw, held, options);
    made.keeps = new Object[] {communicator.raw, held};
    Unreachable.then(this, made::close);  // keeps the gradients until running exchanges have ended, even if this object is collected
    raw = made;
  }

  /** Reports that backward has finished gradient i, counted from 0, so that its exchange may begin. */
  @OfC("st_data_parallel_gradient_ready")
  public void gradientReady(long i) {
    raw.gradient_ready(i);
  }

  /** Returns when all gradients hold the sum or mean over all ranks. */
  @OfC("st_data_parallel_synchronize")
  public void synchronize() {
    raw.synchronize();
  }

  /** While on, no gradients are exchanged. */
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
