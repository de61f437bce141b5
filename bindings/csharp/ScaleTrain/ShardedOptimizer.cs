using System.Collections.Generic;

namespace ScaleTrain {

/// <summary>A sharded optimizer (ZeRO, stages 1 and 2). Each rank keeps the optimizer state of its shards of the parameters and updates these
/// shards, in place. The optimizer sums the ranks' gradients itself. All ranks must make its calls in the same order.</summary>
public sealed class ShardedOptimizer : Handle {
  private readonly Native.ShardedOptimizer native;
  private Pins copies;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>All ranks must create it together. The parameters stay pinned until it is disposed. settings are those of <see cref="Optimizer"/>.
  /// With stage 2 the gradient sums are sharded too. bucketBytes is the size of the gradients that are exchanged together; it affects the speed,
  /// not the result. With shardMasters a step gathers only the 16-bit copies of <see cref="KeepCopies"/>. Of their parameters each rank then
  /// has only the shards that it updates; <see cref="GatherState"/> makes them whole on the ranks that receive the state.</summary>
  [OfC("st_sharded_optimizer_create")]
  public ShardedOptimizer(Communicator communicator, Batch parameters, object settings = null, int stage = 1, ReduceOp op = ReduceOp.Mean,
                          long bucketBytes = 26214400, bool shardMasters = false) {
    Given(communicator, "communicator");
    Pins pins = Pins.Hold(Given(parameters, "parameters"));
    var options = new Native.ShardedOptimizerOptions { stage = stage, op = (int)op, bucket_bytes = bucketBytes,
                                                           shard_masters = shardMasters };
    try {
      native = new Native.ShardedOptimizer(communicator.native, settings == null ? "{}" : Json.OfOptions(settings), pins.All, options);
    } catch {
      pins.Dispose();
      throw;
    } finally { options.handle.Dispose(); }
    Safe.Lend(pins);
    Safe.KeepWhat(communicator.Safe);
  }

  /// <summary>Stage 2 only: passes gradient i when backward has finished it. The gradient is copied. Passing it again before the step adds that
  /// of another micro-batch.</summary>
  [OfC("st_sharded_optimizer_gradient_ready")]
  public void GradientReady(long i, View gradient) {
    using (Pins pins = Pins.Borrow(gradient, "gradient")) native.gradient_ready(i, pins.First);
  }

  /// <summary>Updates the parameters with this rank's gradients, in the order of the parameters. Stage 1 overwrites the gradients. With stage 2, no
  /// arguments mean the gradients passed to <see cref="GradientReady"/>.</summary>
  [OfC("st_sharded_optimizer_step")]
  public OptimizerReport Step(params View[] gradients) {
    using (Pins pins = Pins.Borrow(gradients, "gradients")) return OptimizerReport.Of(native.step(pins.All));
  }

  /// <summary>The scaler's unscale and step and this optimizer's step in one call, for scaled gradients. The scaler's
  /// <see cref="LossScaler.Update"/> must follow.</summary>
  [OfC("st_sharded_optimizer_step_scaled")]
  public OptimizerReport Step(LossScaler scaler, params View[] gradients) {
    Given(scaler, "scaler");
    using (Pins pins = Pins.Borrow(gradients, "gradients")) return OptimizerReport.Of(native.step_scaled(scaler.native, pins.All));
  }

  /// <summary>Sets 16-bit copies of the weights, as <see cref="Optimizer.KeepCopies"/>. Each step gathers them too.</summary>
  [OfC("st_sharded_optimizer_keep_copies")]
  public void KeepCopies(params View[] copies) {
    Pins pins = Pins.Hold(copies, "copies", true);
    lock (native) Safe.Lend(ref this.copies, pins, native.keep_copies);
  }

  /// <summary>Changes a setting, such as lr, from the next step on. All ranks must set the same value.</summary>
  [OfC("st_sharded_optimizer_set")]
  public void Set(string key, object value) { native.set(Given(key, "key"), Json.Of(value)); }

  /// <summary>Gathers a copy of the state of all ranks, for a checkpoint, on this rank or on all ranks (-1). Other ranks get no arrays.</summary>
  [OfC("st_sharded_optimizer_gather_state")]
  public Batch GatherState(int rank = -1) {
    lock (native) {
      var all = new Batch();
      foreach (KeyValuePair<string, StateArray> one in StateArray.All(Safe, native.gather_state(rank))) all.Add(one.Key, one.Value.Copy());
      return all;
    }
  }

  /// <summary>Continues from a state gathered on any number of ranks, or from that of an <see cref="Optimizer"/>. All ranks must call it.</summary>
  [OfC("st_sharded_optimizer_load_state")]
  public void LoadState(Batch state) {
    using (Pins pins = Pins.Borrow(Given(state, "state"))) {
      lock (native) native.load_state(pins.All);
    }
  }
}

}
