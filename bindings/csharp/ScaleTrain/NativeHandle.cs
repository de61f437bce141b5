using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;

namespace ScaleTrain {

internal delegate void Deleter(IntPtr made);

/// <summary>An object of C++'s. Every running call holds it, so that it ends with the last call out of it, whoever disposed of it when; or
/// with the garbage collector.</summary>
internal sealed class NativeHandle : SafeHandle {
  private readonly Deleter deleter;
  private readonly List<Pins> lent = new List<Pins>();  // given back when the object has ended
  private bool isOver;
  private volatile bool isDisposed;
  // What native code calls, and holds weakly: so no cycle through a closure is kept for ever.
  private readonly List<object> kept = new List<object>();

  internal NativeHandle(IntPtr made, Deleter deleter) : base(IntPtr.Zero, deleter != null) {
    this.deleter = deleter;
    SetHandle(made);
    if (made != IntPtr.Zero && deleter != null) ProgramEnd.Watch(this);
  }

  public override bool IsInvalid { get { return handle == IntPtr.Zero; } }

  /// <summary>No call begins any more. SafeHandle itself lets them in as long as another one is inside.</summary>
  internal bool IsDisposed { get { return isDisposed; } }

  internal void End() {
    isDisposed = true;
    Dispose();
  }

  /// <summary>Itself, to be given to a call.</summary>
  internal NativeHandle Open { get { return isDisposed ? throw Failure.Closed() : this; } }

  /// <summary>Given back when the object has ended, or by <see cref="GiveBack"/>.</summary>
  internal void Lend(Pins what) {
    lock (kept) {
      if (isOver) what.Drop();
      else lent.Add(what);
    }
  }

  /// <summary>The library needs it no more.</summary>
  internal void GiveBack(Pins what) {
    lock (kept) {
      if (lent.Remove(what)) what.Drop();
    }
  }

  /// <summary>In place of those before, once the call has taken them.</summary>
  internal void Lend(ref Pins old, Pins now, Action<IntPtr> call) {
    try { call(now.All); } catch {
      now.Dispose();
      throw;
    }
    if (old != null) GiveBack(old);
    Lend(now);
    old = now;
  }

  /// <summary>In place of the one before: what the library calls has changed already.</summary>
  internal void Replace(ref object old, object now) {
    lock (kept) {
      if (old != null) kept.Remove(old);
      if (now != null) kept.Add(now);
      old = now;
    }
  }

  /// <summary>Alive as long as this is.</summary>
  internal void Keep(object what) {
    if (what == null) return;
    lock (kept) kept.Add(what);
  }

  /// <summary>All that another keeps, now and later.</summary>
  internal void KeepWhat(NativeHandle other) { Keep(other.kept); }

  protected override bool ReleaseHandle() {
    deleter(handle);
    lock (kept) {
      isOver = true;
      foreach (Pins one in lent) one.Drop();
    }
    return true;
  }
}

}
