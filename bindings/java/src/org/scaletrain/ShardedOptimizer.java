package org.scaletrain;

import java.util.LinkedHashMap;
import java.util.Map;
import org.scaletrain.internal.ShardedOptimizerOptions;
import org.scaletrain.internal.Unreachable;

/**
 * An optimizer in shards (ZeRO, stages 1 and 2): each rank keeps the state of its pieces of the parameters, and updates these. It sums the
 * ranks' gradients itself. The parameters are updated where they lie, and kept until it is closed: direct arrays alone. Its calls are made
 * by all ranks, in one order.
 */
public final class ShardedOptimizer extends Handle {
  private static final long USUAL_BUCKET = 26214400;
  private static final int COPIES = 2;

  private final org.scaletrain.internal.ShardedOptimizer raw;
  private final Object[] keeps;
  private final int stage;

  /** Of stage 1 and the mean, in buckets of the usual size. */
  public ShardedOptimizer(Communicator communicator, Batch parameters, Map<String, ?> settings) {
    this(communicator, parameters, settings, 1, ReduceOp.MEAN, USUAL_BUCKET);
  }

  /** With parameters that each step gathers. */
  public ShardedOptimizer(Communicator communicator, Batch parameters, Map<String, ?> settings, int stage, ReduceOp op, long bucketBytes) {
    this(communicator, parameters, settings, stage, op, bucketBytes, false);
  }

  /**
   * Made by all ranks at once; settings are those of {@link Optimizer}. stage 2: the sums of gradients are in pieces too. bucketBytes: of
   * gradients that are exchanged together, which changes speed, no bit. mastersInPieces: a step gathers kept copies in place of their
   * parameters, of which a rank then has what it updates, and all where gatherState leaves the state.
   */
  @OfC("st_sharded_optimizer_create")
  public ShardedOptimizer(
      Communicator communicator, Batch parameters, Map<String, ?> settings, int stage, ReduceOp op, long bucketBytes,
      boolean mastersInPieces) {
    Object[] held = given(parameters, "ShardedOptimizer").held("ShardedOptimizer").pairs();
    var options = new ShardedOptimizerOptions();
    options.setStage(stage);
    options.setOp(given(op, "ShardedOptimizer").number());
    options.setBucket_bytes(bucketBytes);
    options.setMasters_in_pieces(mastersInPieces);
    var made = new org.scaletrain.internal.ShardedOptimizer(
        given(communicator, "ShardedOptimizer").raw, Json.text(settings), held, options);
    keeps = new Object[] {communicator.raw, held, null};
    this.stage = stage;
    made.keeps = keeps;
    Unreachable.then(this, made::close);  // keeps them until what is under way has ended, whoever lets go of this
    raw = made;
  }

  /** Stage 2: backward has made gradient i, which is copied. Given again before the step, it is of another micro-batch. */
  @OfC("st_sharded_optimizer_gradient_ready")
  public void gradientReady(long i, Array gradient) {
    raw.gradient_ready(i, given(gradient, "ShardedOptimizer.gradientReady"));
  }

  /** This rank's gradients in the order of the parameters, of stage 1 written; none, of stage 2: those that were given before. */
  @OfC("st_sharded_optimizer_step")
  public OptimizerReport step(Array... gradients) {
    return (OptimizerReport) raw.step(lent(gradients));
  }

  /** The scaler's unscale and step, and this step, in one: of scaled gradients. Its update() comes next. */
  @OfC("st_sharded_optimizer_step_scaled")
  public OptimizerReport stepScaled(LossScaler scaler, Array... gradients) {
    return (OptimizerReport) raw.step_scaled(given(scaler, "ShardedOptimizer.stepScaled").raw, lent(gradients));
  }

  /** Java's own arrays are copied back where a call writes them, which a step of stage 2 does not. */
  private Array[] lent(Array... gradients) {
    if (stage != 2 || gradients == null) return gradients;
    Array[] lent = gradients.clone();
    for (int i = 0; i < lent.length; ++i)
      if (lent[i] != null) lent[i] = lent[i].readOnly();
    return lent;
  }

  /** The weights in 16 bits, as {@link Optimizer#keepCopies}; a step gathers them too. */
  @OfC("st_sharded_optimizer_keep_copies")
  public synchronized void keepCopies(Array... copies) {
    Array[] held = copies.clone();
    for (Array copy : held) if (copy != null) copy.held("ShardedOptimizer.keepCopies", "the copies");
    raw.keep_copies(held);
    keeps[COPIES] = held;
    raw.keeps = keeps;
  }

  /** Changes a setting, such as lr, from the next step on; alike on all ranks. */
  @OfC("st_sharded_optimizer_set")
  public void set(String key, Object value) {
    raw.set(key, Json.text(value));
  }

  /** The state of all ranks, for a checkpoint: a copy, on that rank or on all (-1); elsewhere of no arrays. */
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

  /** Goes on from the state of any number of ranks, or of an {@link Optimizer}; called by all ranks. */
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
