using System;
using System.Threading;

namespace ScaleTrain {

/// <summary>One call at a time of an object whose answers are the library's memory until its next call: they are read in the call's turn. Callbacks
/// of the call may call it again.</summary>
internal struct Turn : IDisposable {
  private readonly object gate;

  private Turn(object gate) { this.gate = gate; }

  /// <summary>Throws when another thread has it, or when the object is disposed.</summary>
  internal static Turn Of(NativeHandle gate, string call) {
    if (!Monitor.TryEnter(gate.Open)) throw new BusyException(call + ": another thread is in a call of this object; use one object a thread, or wait");
    return new Turn(gate);
  }

  public void Dispose() { Monitor.Exit(gate); }
}

}
