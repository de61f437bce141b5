using System;
using System.Runtime.ExceptionServices;
using System.Threading;

namespace ScaleTrain {

/// <summary>Stores the exception of this thread's call until the call has returned to C#, since no exception may cross native code.</summary>
internal static class Failure {
  private static int waiting;  // count over all threads: calls check it first, so that only failed calls access thread-local storage
  [ThreadStatic] private static ExceptionDispatchInfo mine;

  /// <summary>Makes the running call throw this when it returns.</summary>
  internal static void Set(ExceptionDispatchInfo thrown) {
    if (mine == null) Interlocked.Increment(ref waiting);
    mine = thrown;
  }

  internal static void Check() {
    if (waiting != 0) Throw();
  }

  private static void Throw() {
    ExceptionDispatchInfo thrown = mine;
    if (thrown == null) return;
    mine = null;
    Interlocked.Decrement(ref waiting);
    ProgramEnd.HoldBack();
    thrown.Throw();
  }

  /// <summary>The exception for a call on a closed handle.</summary>
  internal static InvalidHandleException Closed() {
    return new InvalidHandleException("the object is disposed; create a new one, or dispose this one only after its last call");
  }
}

}
