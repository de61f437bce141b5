namespace ScaleTrain {

/// <summary>Data parallel by itself: gradients of the program's own backward become the sum or mean of all ranks', where they lie, while backward goes
/// on. A step is backward, with <see cref="GradientReady"/> for each as it is made, and <see cref="Synchronize"/>.</summary>
public sealed class DataParallel : Handle {
  private readonly Native.DataParallel native;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>Made by all ranks at once; gradients in the order of the forward, pinned until it is disposed of. bucketBytes: of gradients that are
  /// exchanged together, which changes speed, no bit.</summary>
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

  /// <summary>Backward has made gradient i, from 0 on: its exchange may begin.</summary>
  [OfC("st_data_parallel_gradient_ready")]
  public void GradientReady(long i) { native.gradient_ready(i); }

  /// <summary>Returns when all gradients hold what all ranks have together.</summary>
  [OfC("st_data_parallel_synchronize")]
  public void Synchronize() { native.synchronize(); }

  /// <summary>While on, nothing is exchanged.</summary>
  [OfC("st_data_parallel_no_sync")]
  public void NoSync(bool on) { native.no_sync(on); }
}

}
