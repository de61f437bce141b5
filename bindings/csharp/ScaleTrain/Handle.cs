using System;

namespace ScaleTrain {

/// <summary>An object of the library. <see cref="Dispose"/> frees it; otherwise the garbage collector does. Objects may be disposed in any order, any
/// number of times, from any thread: an object keeps what it needs of the objects it was created from. Calls on a disposed object throw
/// <see cref="InvalidHandleException"/>.</summary>
/// <remarks>Each object serves one call at a time; other calls throw <see cref="BusyException"/> unless the method says otherwise. An object may be
/// disposed while another thread is in a call of it: it is freed when that call has returned.</remarks>
public abstract class Handle : IDisposable {
  internal Handle() {}

  internal abstract NativeHandle Safe { get; }

  /// <summary>Whether it has been disposed.</summary>
  public bool IsDisposed { get { return Safe.IsDisposed; } }

  /// <summary>Frees the object. Never throws.</summary>
  public void Dispose() { Safe.End(); }

  /// <summary>The argument; throws if it is null.</summary>
  internal static T Given<T>(T argument, string name) where T : class {
    return argument ?? throw new InvalidArgumentException(name + " is null");
  }
}

}
