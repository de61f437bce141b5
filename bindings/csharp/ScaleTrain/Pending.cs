using System;
using System.Threading;
using System.Threading.Tasks;

namespace ScaleTrain {

/// <summary>An operation that runs in the background. Disposing it waits until the operation has ended.</summary>
public sealed class Pending : Handle {
  private static readonly TimeSpan longest = TimeSpan.FromDays(10000);  // the library counts nanoseconds in 64 bits
  private readonly Native.Pending native;
  internal override NativeHandle Safe { get { return native.handle; } }

  internal Pending(Native.Pending made, NativeHandle parent) {
    native = made;
    Safe.KeepWhat(parent);
  }

  /// <summary>Waits until the operation is done. Throws its error if it failed, on every call.</summary>
  [OfC("st_pending_wait")]
  public void Wait() { native.wait(); }

  /// <summary>The same, for at most this long; false if the operation is still running. <see cref="Timeout.InfiniteTimeSpan"/> means no limit;
  /// any other negative time means no wait.</summary>
  public bool Wait(TimeSpan most) {
    if (most != Timeout.InfiniteTimeSpan && most < longest) return native.wait_for((long)Math.Max(0, most.TotalMilliseconds));
    Wait();
    return true;
  }

  /// <summary>Whether <see cref="Wait()"/> would return at once.</summary>
  [OfC("st_pending_poll")]
  public bool IsDone { get { return native.is_done(); } }

  /// <summary>A task that waits for the operation and then disposes this object.</summary>
  public Task AsTask() {
    return Task.Run(() => {
      using (this) Wait();
    });
  }
}

}
