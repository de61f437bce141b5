using System;
using System.IO;
using System.Runtime.InteropServices;
using System.Threading;

namespace ScaleTrain {

/// <summary>Writes rows into arrays, one array per field. The arrays are valid only during the call.</summary>
public delegate void FillFunction(long[] rows, BorrowedArray[] arrays);

/// <summary>Runs <c>task(i)</c> for every 0 &lt;= i &lt; n, in any order, on any threads, and returns when all have returned.</summary>
public delegate void ParallelFunction(long n, Action<long> task);

/// <summary>The severity of a log record.</summary>
public enum LogLevel {
  /// <summary>Something failed.</summary>
  Error = 0,
  /// <summary>Something may not be as intended.</summary>
  Warning = 1,
  /// <summary>Normal events.</summary>
  Info = 2,
  /// <summary>Details for diagnosis.</summary>
  Debug = 3
}

/// <summary>Calls of the program's functions by native code. The target of each handle is the delegate.</summary>
internal static unsafe class Callbacks {
  [MonoPInvokeCallback(typeof(Bridge.StepCall))]
  internal static IntPtr Step(IntPtr user, IntPtr report, int* goesOn) {
    try {
      *goesOn = Bridge.Target<Func<StepReport, bool>>(user)(StepReport.Of(new Record(report))) ? 1 : 0;
      return IntPtr.Zero;
    } catch (Exception exception) { return Bridge.Thrown(exception); }
  }

  [MonoPInvokeCallback(typeof(Bridge.TokenCall))]
  internal static IntPtr Token(IntPtr user, int token, int* goesOn) {
    try {
      *goesOn = Bridge.Target<Func<int, bool>>(user)(token) ? 1 : 0;
      return IntPtr.Zero;
    } catch (Exception exception) { return Bridge.Thrown(exception); }
  }

  [MonoPInvokeCallback(typeof(Bridge.RateCall))]
  internal static IntPtr Rate(IntPtr user, long step, double* rate) {
    try {
      *rate = Bridge.Target<Func<long, double>>(user)(step);
      return IntPtr.Zero;
    } catch (Exception exception) { return Bridge.Thrown(exception); }
  }

  [MonoPInvokeCallback(typeof(Bridge.LogCall))]
  internal static IntPtr Log(IntPtr user, int level, IntPtr area, IntPtr text) {
    try {
      var log = (Action<LogLevel, string, string>)GCHandle.FromIntPtr(user).Target;
      if (log != null) log((LogLevel)level, Utf8.From(area), Utf8.From(text));  // null while the context is being collected
      return IntPtr.Zero;
    } catch (Exception exception) { return Bridge.Thrown(exception); }
  }

  [MonoPInvokeCallback(typeof(Bridge.ParallelCall))]
  internal static IntPtr Parallel(IntPtr user, long n, IntPtr task) {
    var tasks = new TaskRange(task);
    try {
      var parallel = (ParallelFunction)GCHandle.FromIntPtr(user).Target;
      if (parallel != null) parallel(n, tasks.Run);  // the caller runs the tasks that it leaves out
      return IntPtr.Zero;
    } catch (Exception exception) { return Bridge.Thrown(exception); } finally { tasks.End(); }
  }

  [MonoPInvokeCallback(typeof(Bridge.WriteCall))]
  internal static IntPtr Write(IntPtr user, byte* bytes, long count) {
    try {
      Bridge.Target<StreamEnd>(user).Write(bytes, count);
      return IntPtr.Zero;
    } catch (Exception exception) { return Bridge.Thrown(exception); }
  }

  [MonoPInvokeCallback(typeof(Bridge.ReadCall))]
  internal static IntPtr Read(IntPtr user, byte* bytes, long room, long* count) {
    try {
      *count = Bridge.Target<StreamEnd>(user).Read(bytes, room);
      return IntPtr.Zero;
    } catch (Exception exception) { return Bridge.Thrown(exception); }
  }

  [MonoPInvokeCallback(typeof(Bridge.MoveCall))]
  internal static IntPtr WriteTo(IntPtr user, int to, byte* bytes, long count, long* taken, byte* reason, int room) {
    try {
      *taken = Bridge.Target<TransportEnd>(user).Write(to, bytes, count);
      return IntPtr.Zero;
    } catch (Exception exception) { return TransportEnd.Say(exception, reason, room); }
  }

  [MonoPInvokeCallback(typeof(Bridge.MoveCall))]
  internal static IntPtr ReadFrom(IntPtr user, int from, byte* bytes, long count, long* given, byte* reason, int room) {
    try {
      *given = Bridge.Target<TransportEnd>(user).Read(from, bytes, count);
      return IntPtr.Zero;
    } catch (Exception exception) { return TransportEnd.Say(exception, reason, room); }
  }

  [MonoPInvokeCallback(typeof(Bridge.FillCall))]
  internal static IntPtr Fill(IntPtr user, long count, long* rows, long n, RawView* views) {
    BorrowedArray[] arrays = null;
    try {
      arrays = BorrowedArray.Of(n, views, false);
      Bridge.Target<FillFunction>(user)(new ReadOnlySpan<long>(rows, checked((int)count)).ToArray(), arrays);
      return IntPtr.Zero;
    } catch (Exception exception) { return Bridge.Thrown(exception); } finally { BorrowedArray.End(arrays); }
  }
}

/// <summary>The tasks of a parallel function, valid while it runs.</summary>
internal sealed class TaskRange {
  private readonly IntPtr task;
  private int inside;
  private volatile bool isOver;

  internal TaskRange(IntPtr task) { this.task = task; }

  internal void Run(long i) {
    Interlocked.Increment(ref inside);
    try {
      if (isOver) throw new InvalidHandleException("ParallelFunction: a task was run after the parallel function that it belongs to has returned");
      ScaleTrain.Native.native.run_task(task, i);
    } finally { Interlocked.Decrement(ref inside); }
  }

  /// <summary>Waits for threads that are still in tasks when the function returns: the library must not continue before they are done.</summary>
  internal void End() {
    isOver = true;
    Thread.MemoryBarrier();
    while (Volatile.Read(ref inside) > 0) Thread.Yield();
  }
}

/// <summary>A C# stream that native code reads or writes, one chunk at a time.</summary>
internal sealed unsafe class StreamEnd {
  private readonly Stream stream;
  private readonly byte[] chunk = new byte[64 * 1024];

  internal StreamEnd(Stream stream) { this.stream = stream; }

  internal void Write(byte* bytes, long count) {
    while (count > 0) {
      int now = (int)Math.Min(count, chunk.Length);
      new ReadOnlySpan<byte>(bytes, now).CopyTo(chunk);
      stream.Write(chunk, 0, now);
      bytes += now;
      count -= now;
    }
  }

  internal long Read(byte* bytes, long room) {
    int wanted = (int)Math.Min(room, chunk.Length), count = stream.Read(chunk, 0, wanted);
    if (count < 0 || count > wanted) throw new InvalidArgumentException(stream.GetType().Name + ".Read must return 0 to " + wanted + " bytes, got " + count);
    new ReadOnlySpan<byte>(chunk, 0, count).CopyTo(new Span<byte>(bytes, count));
    return count;
  }
}

}
