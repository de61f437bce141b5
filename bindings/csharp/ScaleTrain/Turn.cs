using System;
using System.Threading;

namespace ScaleTrain {

/// <summary>Allows one call at a time on an object whose results are library memory that its next call overwrites. The results are read while the
/// turn is held, and the object is not deleted before that. Callbacks of the call may call the object again.</summary>
internal struct Turn : IDisposable {
  private readonly NativeHandle gate;

  private Turn(NativeHandle gate) { this.gate = gate; }

  /// <summary>Throws if another thread holds the turn, or if the object is disposed.</summary>
  internal static Turn Of(NativeHandle gate, string call) {
    if (!Monitor.TryEnter(gate.Open)) throw new BusyException(call + ": another thread is in a call of this object; wait for it, or use one object per thread");
    bool held = false;
    try { gate.DangerousAddRef(ref held); } catch (ObjectDisposedException) { throw Failure.Closed(); } finally {
      if (!held) Monitor.Exit(gate);
    }
    return new Turn(gate);
  }

  public void Dispose() {
    Monitor.Exit(gate);
    gate.DangerousRelease();
  }
}

}
