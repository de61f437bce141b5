using System;
using System.Runtime.ExceptionServices;
using System.Threading;

namespace ScaleTrain {

/// <summary>What went wrong in this thread's call, until it has returned to C#: no exception crosses native code.</summary>
internal static class Failure {
  private static int waiting;  // in all threads: looked at by every call, so that only failed ones ask for their thread's
  [ThreadStatic] private static ExceptionDispatchInfo mine;

  /// <summary>The running call throws this when it returns.</summary>
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

  /// <summary>For a call on a handle that is closed.</summary>
  internal static InvalidHandleException Closed() {
    return new InvalidHandleException("the object is disposed: make a new one, or keep this one until its last call");
  }
}

}
