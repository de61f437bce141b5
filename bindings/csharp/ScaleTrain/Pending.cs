using System;
using System.Threading;
using System.Threading.Tasks;

namespace ScaleTrain {

/// <summary>Work that goes on after the call which began it. Disposing of it waits for the end.</summary>
public sealed class Pending : Handle {
  private static readonly TimeSpan longest = TimeSpan.FromDays(10000);  // the library counts nanoseconds in 64 bits
  private readonly Native.Pending native;
  internal override NativeHandle Safe { get { return native.handle; } }

  internal Pending(Native.Pending made, NativeHandle parent) {
    native = made;
    Safe.KeepWhat(parent);
  }

  /// <summary>Waits until it is done. Throws what the work failed with, each time.</summary>
  [OfC("st_pending_wait")]
  public void Wait() { native.wait(); }

  /// <summary>Waits at most so long; false: it is still under way. <see cref="Timeout.InfiniteTimeSpan"/>: until it is done; another negative one: not at
  /// all.</summary>
  public bool Wait(TimeSpan most) {
    if (most != Timeout.InfiniteTimeSpan && most < longest) return native.wait_for((long)Math.Max(0, most.TotalMilliseconds));
    Wait();
    return true;
  }

  /// <summary>Whether <see cref="Wait()"/> would return at once.</summary>
  [OfC("st_pending_poll")]
  public bool IsDone { get { return native.is_done(); } }

  /// <summary>It as a task, which waits and then disposes of it.</summary>
  public Task AsTask() {
    return Task.Run(() => {
      using (this) Wait();
    });
  }
}

}
