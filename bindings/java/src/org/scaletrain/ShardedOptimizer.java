package org.scaletrain;

import java.util.LinkedHashMap;
import java.util.Map;
import org.scaletrain.internal.ShardedOptimizerOptions;
import org.scaletrain.internal.Unreachable;

/**
 * A sharded optimizer (ZeRO, stages 1 and 2). Each rank keeps the optimizer state of its shards of the parameters and updates these shards.
 * The optimizer sums the ranks' gradients itself. Parameters are updated in place; their arrays must be direct and are kept until it is
 * closed. All ranks must make its calls in the same order.
 */
public final class ShardedOptimizer extends Handle {
  private static final long USUAL_BUCKET = 26214400;
  private static final int COPIES = 2;

  private final org.scaletrain.internal.ShardedOptimizer raw;
  private final Object[] keeps;
  private final int stage;

  /** Stage 1, the mean of the gradients and the default bucket size. */
  public ShardedOptimizer(Communicator communicator, Batch parameters, Map<String, ?> settings) {
    this(communicator, parameters, settings, 1, ReduceOp.MEAN, USUAL_BUCKET);
  }

  /** The same for a given stage, op and bucket size. Each step gathers the whole parameters. */
  public ShardedOptimizer(Communicator communicator, Batch parameters, Map<String, ?> settings, int stage, ReduceOp op, long bucketBytes) {
    this(communicator, parameters, settings, stage, op, bucketBytes, false);
  }

  /**
   * All ranks must create it together. {@code settings} are those of {@link Optimizer}. With stage 2 the gradient sums are sharded too.
   * {@code bucketBytes} is the size of the gradients that are exchanged together; it affects the speed, not the result. With
   * {@code shardMasters} a step gathers only the 16-bit copies of {@link #keepCopies}. Of their parameters each rank then has only the
   * shards that it updates; {@link #gatherState} makes them whole on the ranks that receive the state.
   */
  @OfC("st_sharded_optimizer_create")
  public ShardedOptimizer(
      Communicator communicator, Batch parameters, Map<String, ?> settings, int stage, ReduceOp op, long bucketBytes,
      boolean shardMasters) {
    Object[] held = given(parameters, "ShardedOptimizer").held("ShardedOptimizer").pairs();
    var options = new ShardedOptimizerOptions();
    options.setStage(stage);
    options.setOp(given(op, "ShardedOptimizer").number());
    options.setBucket_bytes(bucketBytes);
    options.setShard_masters(shardMasters);
    var made = new org.scaletrain.internal.ShardedOptimizer(
        given(communicator, "ShardedOptimizer").raw, Json.text(settings), held, options);
    keeps = new Object[] {communicator.raw, held, null};
    this.stage = stage;
    made.keeps = keeps;
    Unreachable.then(this, made::close);  // keeps the parameters until running exchanges have ended, even if this object is collected
    raw = made;
  }

  /**
   * Stage 2 only: passes gradient i when backward has finished it. The gradient is copied. Passing it again before the step adds that of
   * another micro-batch.
   */
  @OfC("st_sharded_optimizer_gradient_ready")
  public void gradientReady(long i, Array gradient) {
    raw.gradient_ready(i, given(gradient, "ShardedOptimizer.gradientReady"));
  }

  /**
   * Updates the parameters with this rank's gradients, in the order of the parameters. Stage 1 overwrites the gradients. With stage 2, no
   * arguments mean the gradients passed to {@link #gradientReady}.
   */
  @OfC("st_sharded_optimizer_step")
  public OptimizerReport step(Array... gradients) {
    return (OptimizerReport) raw.step(readableOf(gradients));
  }

  /** The scaler's unscale and step and this optimizer's step in one call, for scaled gradients. The scaler's update() must follow. */
  @OfC("st_sharded_optimizer_step_scaled")
  public OptimizerReport stepScaled(LossScaler scaler, Array... gradients) {
    return (OptimizerReport) raw.step_scaled(given(scaler, "ShardedOptimizer.stepScaled").raw, readableOf(gradients));
  }

  /** Marks the arrays of a stage 2 step as read-only: it does not write them, so heap arrays need not be copied back. */
  private Array[] readableOf(Array... gradients) {
    if (stage != 2 || gradients == null) return gradients;
    Array[] views = gradients.clone();
    for (int i = 0; i < views.length; ++i)
      if (views[i] != null) views[i] = views[i].readOnly();
    return views;
  }

  /** Sets 16-bit copies of the weights, as {@link Optimizer#keepCopies}. Each step gathers them too. */
  @OfC("st_sharded_optimizer_keep_copies")
  public synchronized void keepCopies(Array... copies) {
    Array[] held = copies.clone();
    for (Array copy : held) if (copy != null) copy.held("ShardedOptimizer.keepCopies", "the copies");
    raw.keep_copies(held);
    keeps[COPIES] = held;
    raw.keeps = keeps;
  }

  /** Changes a setting, such as lr, from the next step on. All ranks must set the same value. */
  @OfC("st_sharded_optimizer_set")
  public void set(String key, Object value) {
    raw.set(key, Json.text(value));
  }

  /** Gathers a copy of the state of all ranks, for a checkpoint, on {@code rank} or on all ranks (-1). Other ranks get no arrays. */
  @OfC("st_sharded_optimizer_gather_state")
  public synchronized Batch gatherState(int rank) {
    Object[] views = raw.gather_state(rank);
    Map<String, Array> copies = new LinkedHashMap<>();
    for (int i = 0; i < views.length; i += 3) {
      ArrayType type = (ArrayType) views[i + 1];
      Array copy = Array.allocate(type.dtype(), type.dims());
      copy.bytes().put((java.nio.ByteBuffer) views[i + 2]);
      copies.put((String) views[i], copy);
    }
    return Batch.of(copies);
  }

  /** Continues from a state gathered on any number of ranks, or from that of an {@link Optimizer}. All ranks must call it. */
  @OfC("st_sharded_optimizer_load_state")
  public synchronized void loadState(Batch state) {
    raw.load_state(given(state, "ShardedOptimizer.loadState").pairs());
  }

  @Override
  @OfC("st_sharded_optimizer_destroy")
  public synchronized void close() {
    raw.close();
    raw.keeps = null;
  }
}
