namespace ScaleTrain {

/// <summary>Data parallelism as a separate part: replaces the gradients of the program's own backward, in place, by their sum or mean over all ranks,
/// while backward is still running. In a step, call <see cref="GradientReady"/> for each gradient as backward produces it, then
/// <see cref="Synchronize"/>.</summary>
public sealed class DataParallel : Handle {
  private readonly Native.DataParallel native;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>All ranks must create it together. gradients are in forward order and stay pinned until this is disposed. bucketBytes is the size
  /// of the gradients that are exchanged together; it affects the speed, not the result.</summary>
  [OfC("st_data_parallel_create")]
  public DataParallel(Communicator communicator, Batch gradients, ReduceOp op = ReduceOp.Mean, long bucketBytes = 26214400) {
    Given(communicator, "communicator");
    Pins pins = Pins.Hold(Given(gradients, "gradients"));
    var options = new Native.DataParallelOptions { op = (int)op, bucket_bytes = bucketBytes };
    try {
      native = new Native.DataParallel(communicator.native, pins.All, options);
    } catch {
      pins.Dispose();
      throw;
    } finally { options.handle.Dispose(); }
    Safe.Lend(pins);
    Safe.KeepWhat(communicator.Safe);
  }

  /// <summary>Reports that backward has finished gradient i, counted from 0, so that its exchange may begin.</summary>
  [OfC("st_data_parallel_gradient_ready")]
  public void GradientReady(long i) { native.gradient_ready(i); }

  /// <summary>Returns when all gradients hold the sum or mean over all ranks.</summary>
  [OfC("st_data_parallel_synchronize")]
  public void Synchronize() { native.synchronize(); }

  /// <summary>While on, no gradients are exchanged.</summary>
  [OfC("st_data_parallel_no_sync")]
  public void NoSync(bool on) { native.no_sync(on); }
}

}
