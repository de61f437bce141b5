using System.Collections.Generic;

namespace ScaleTrain {

/// <summary>An optimizer in shards (ZeRO, stages 1 and 2): each rank keeps the state of its pieces of the parameters, and updates these, where they
/// lie. It sums the ranks' gradients itself. Its calls are made by all ranks, in one order.</summary>
public sealed class ShardedOptimizer : Handle {
  private readonly Native.ShardedOptimizer native;
  private Pins copies;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>Made by all ranks at once; the parameters are pinned until it is disposed of. settings: as of <see cref="Optimizer"/>. stage 2: the sums
  /// of gradients are in pieces too. bucketBytes: of gradients that are exchanged together, which changes speed, no bit. mastersInPieces: a step
  /// gathers kept copies in place of their parameters, of which a rank then has what it updates, and all where GatherState leaves the state.</summary>
  [OfC("st_sharded_optimizer_create")]
  public ShardedOptimizer(Communicator communicator, Batch parameters, object settings = null, int stage = 1, ReduceOp op = ReduceOp.Mean,
                          long bucketBytes = 26214400, bool mastersInPieces = false) {
    Given(communicator, "communicator");
    Pins pins = Pins.Hold(Given(parameters, "parameters"));
    var options = new Native.ShardedOptimizerOptions { stage = stage, op = (int)op, bucket_bytes = bucketBytes,
                                                           masters_in_pieces = mastersInPieces };
    try {
      native = new Native.ShardedOptimizer(communicator.native, settings == null ? "{}" : Json.OfOptions(settings), pins.All, options);
    } catch {
      pins.Dispose();
      throw;
    } finally { options.handle.Dispose(); }
    Safe.Lend(pins);
    Safe.KeepWhat(communicator.Safe);
  }

  /// <summary>Stage 2: backward has made gradient i, which is copied. Given again before the step, it is of another micro-batch.</summary>
  [OfC("st_sharded_optimizer_gradient_ready")]
  public void GradientReady(long i, View gradient) {
    using (Pins pins = Pins.Borrow(gradient, "gradient")) native.gradient_ready(i, pins.First);
  }

  /// <summary>This rank's gradients in the order of the parameters, of stage 1 written; none, of stage 2: those that were given before.</summary>
  [OfC("st_sharded_optimizer_step")]
  public OptimizerReport Step(params View[] gradients) {
    using (Pins pins = Pins.Borrow(gradients, "gradients")) return OptimizerReport.Of(native.step(pins.All));
  }

  /// <summary>The scaler's unscale and step, and this step, in one: by scaled gradients. Its <see cref="LossScaler.Update"/> comes next.</summary>
  [OfC("st_sharded_optimizer_step_scaled")]
  public OptimizerReport Step(LossScaler scaler, params View[] gradients) {
    Given(scaler, "scaler");
    using (Pins pins = Pins.Borrow(gradients, "gradients")) return OptimizerReport.Of(native.step_scaled(scaler.native, pins.All));
  }

  /// <summary>The weights in 16 bits, as <see cref="Optimizer.KeepCopies"/>; a step gathers them too.</summary>
  [OfC("st_sharded_optimizer_keep_copies")]
  public void KeepCopies(params View[] copies) {
    Pins pins = Pins.Hold(copies, "copies", true);
    lock (native) Safe.Lend(ref this.copies, pins, native.keep_copies);
  }

  /// <summary>Changes a setting, such as lr, from the next step on; alike on all ranks.</summary>
  [OfC("st_sharded_optimizer_set")]
  public void Set(string key, object value) { native.set(Given(key, "key"), Json.Of(value)); }

  /// <summary>The state of all ranks, for a checkpoint: a copy, on that rank or on all (-1); elsewhere of no arrays.</summary>
  [OfC("st_sharded_optimizer_gather_state")]
  public Batch GatherState(int rank = -1) {
    lock (native) {
      var all = new Batch();
      foreach (KeyValuePair<string, StateArray> one in StateArray.All(Safe, native.gather_state(rank))) all.Add(one.Key, one.Value.Copy());
      return all;
    }
  }

  /// <summary>Goes on from the state of any number of ranks, or of an <see cref="Optimizer"/>; called by all ranks.</summary>
  [OfC("st_sharded_optimizer_load_state")]
  public void LoadState(Batch state) {
    using (Pins pins = Pins.Borrow(Given(state, "state"))) {
      lock (native) native.load_state(pins.All);
    }
  }
}

}
