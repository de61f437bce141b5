using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;

namespace ScaleTrain {

internal delegate void Deleter(IntPtr made);

/// <summary>Owns a C++ object. Every running call holds a reference, so the object is deleted after it has been disposed or collected and its
/// last call has returned.</summary>
internal sealed class NativeHandle : SafeHandle {
  private readonly Deleter deleter;
  private readonly List<Pins> lent = new List<Pins>();  // arrays that the object borrows; unpinned when it is deleted
  private bool isOver;
  private volatile bool isDisposed;
  // Objects that native code calls. It holds only weak handles, so a closure that refers back to this object does not keep it alive forever.
  private readonly List<object> kept = new List<object>();

  internal NativeHandle(IntPtr made, Deleter deleter) : base(IntPtr.Zero, deleter != null) {
    this.deleter = deleter;
    SetHandle(made);
    if (made != IntPtr.Zero && deleter != null) ProgramEnd.Watch(this);
  }

  public override bool IsInvalid { get { return handle == IntPtr.Zero; } }

  /// <summary>Whether new calls are refused. SafeHandle itself would accept them while another call is running.</summary>
  internal bool IsDisposed { get { return isDisposed; } }

  internal void End() {
    isDisposed = true;
    Dispose();
  }

  /// <summary>This handle, for a call; throws if it is disposed.</summary>
  internal NativeHandle Open { get { return isDisposed ? throw Failure.Closed() : this; } }

  /// <summary>Keeps arrays pinned until the object is deleted, or until <see cref="GiveBack"/>.</summary>
  internal void Lend(Pins what) {
    lock (kept) {
      if (isOver) what.Drop();
      else lent.Add(what);
    }
  }

  /// <summary>Unpins arrays that the library no longer needs.</summary>
  internal void GiveBack(Pins what) {
    lock (kept) {
      if (lent.Remove(what)) what.Drop();
    }
  }

  /// <summary>Makes a call that replaces the borrowed arrays. The old ones are unpinned if the call succeeds.</summary>
  internal void Lend(ref Pins old, Pins now, Action<IntPtr> call) {
    try { call(now.All); } catch {
      now.Dispose();
      throw;
    }
    if (old != null) GiveBack(old);
    Lend(now);
    old = now;
  }

  /// <summary>Keeps now alive instead of old. The library must already have switched its callback.</summary>
  internal void Replace(ref object old, object now) {
    lock (kept) {
      if (old != null) kept.Remove(old);
      if (now != null) kept.Add(now);
      old = now;
    }
  }

  /// <summary>Keeps an object alive as long as this handle.</summary>
  internal void Keep(object what) {
    if (what == null) return;
    lock (kept) kept.Add(what);
  }

  /// <summary>Keeps everything alive that another handle keeps, now or later.</summary>
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
