using System;
using System.Threading;

namespace ScaleTrain {

/// <summary>One call at a time of an object whose answers are the library's memory until its next call: they are read in the call's turn, and the
/// object does not end before that. Callbacks of the call may call it again.</summary>
internal struct Turn : IDisposable {
  private readonly NativeHandle gate;

  private Turn(NativeHandle gate) { this.gate = gate; }

  /// <summary>Throws when another thread has it, or when the object is disposed.</summary>
  internal static Turn Of(NativeHandle gate, string call) {
    if (!Monitor.TryEnter(gate.Open)) throw new BusyException(call + ": another thread is in a call of this object; use one object a thread, or wait");
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
