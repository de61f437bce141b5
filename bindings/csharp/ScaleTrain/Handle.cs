using System;

namespace ScaleTrain {

/// <summary>An object of the library's. <see cref="Dispose"/> gives it back, in any order, any number of times, from any thread; what was
/// made of it keeps what it needs. One that is forgotten is given back by the garbage collector. After it, calls throw
/// <see cref="InvalidHandleException"/>.</summary>
/// <remarks>Each object serves one call at a time, and others get a <see cref="BusyException"/>, but where its method says otherwise.
/// Disposing of one while another thread is in a call of it is fine: it ends when that call has returned.</remarks>
public abstract class Handle : IDisposable {
  internal Handle() {}

  internal abstract NativeHandle Safe { get; }

  /// <summary>Whether it was disposed of.</summary>
  public bool IsDisposed { get { return Safe.IsDisposed; } }

  /// <summary>Gives it back. Is never refused.</summary>
  public void Dispose() { Safe.End(); }

  /// <summary>Of an argument that has to be there.</summary>
  internal static T Given<T>(T argument, string name) where T : class {
    return argument ?? throw new InvalidArgumentException(name + " is null");
  }
}

}
