using System;
using System.IO;
using System.Runtime.InteropServices;
using System.Threading;

namespace ScaleTrain {

/// <summary>Writes rows into arrays, one for each field. The arrays are there for the call only.</summary>
public delegate void FillFunction(long[] rows, Lent[] arrays);

/// <summary>Runs <c>task(i)</c> for every 0 &lt;= i &lt; n, in any order on any threads, and returns when all have.</summary>
public delegate void ParallelFunction(long n, Action<long> task);

/// <summary>How much a log record matters.</summary>
public enum LogLevel {
  /// <summary>Something failed.</summary>
  Error = 0,
  /// <summary>Something is not as it should be.</summary>
  Warning = 1,
  /// <summary>What is done.</summary>
  Info = 2,
  /// <summary>For those who look for a defect.</summary>
  Debug = 3
}

/// <summary>A program's functions as native code calls them: the delegate is the handle's target.</summary>
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
      if (log != null) log((LogLevel)level, Utf8.From(area), Utf8.From(text));  // else the context and all of it is on its way out
      return IntPtr.Zero;
    } catch (Exception exception) { return Bridge.Thrown(exception); }
  }

  [MonoPInvokeCallback(typeof(Bridge.ParallelCall))]
  internal static IntPtr Parallel(IntPtr user, long n, IntPtr task) {
    var tasks = new TaskRange(task);
    try {
      var parallel = (ParallelFunction)GCHandle.FromIntPtr(user).Target;
      if (parallel != null) parallel(n, tasks.Run);  // what it does not run, the caller does
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
    Lent[] arrays = null;
    try {
      arrays = Lent.Of(n, views, false);
      Bridge.Target<FillFunction>(user)(new ReadOnlySpan<long>(rows, checked((int)count)).ToArray(), arrays);
      return IntPtr.Zero;
    } catch (Exception exception) { return Bridge.Thrown(exception); } finally { Lent.End(arrays); }
  }
}

/// <summary>The tasks of a parallel function's, while it runs.</summary>
internal sealed class TaskRange {
  private readonly IntPtr task;
  private int inside;
  private volatile bool isOver;

  internal TaskRange(IntPtr task) { this.task = task; }

  internal void Run(long i) {
    Interlocked.Increment(ref inside);
    try {
      if (isOver) throw new InvalidHandleException("the parallel function has returned, and this is a task of it");
      ScaleTrain.Native.native.run_task(task, i);
    } finally { Interlocked.Decrement(ref inside); }
  }

  /// <summary>A function that left threads behind in tasks: the library must not go on before they are done.</summary>
  internal void End() {
    isOver = true;
    Thread.MemoryBarrier();
    while (Volatile.Read(ref inside) > 0) Thread.Yield();
  }
}

/// <summary>A stream of C#'s as native code reads or writes it, a piece at a time.</summary>
internal sealed unsafe class StreamEnd {
  private readonly Stream stream;
  private readonly byte[] piece = new byte[64 * 1024];

  internal StreamEnd(Stream stream) { this.stream = stream; }

  internal void Write(byte* bytes, long count) {
    while (count > 0) {
      int now = (int)Math.Min(count, piece.Length);
      new ReadOnlySpan<byte>(bytes, now).CopyTo(piece);
      stream.Write(piece, 0, now);
      bytes += now;
      count -= now;
    }
  }

  internal long Read(byte* bytes, long room) {
    int wanted = (int)Math.Min(room, piece.Length), count = stream.Read(piece, 0, wanted);
    if (count < 0 || count > wanted) throw new InvalidArgumentException(stream.GetType().Name + ".Read gave " + count + " bytes where 0 to " + wanted + " were asked for");
    new ReadOnlySpan<byte>(piece, 0, count).CopyTo(new Span<byte>(bytes, count));
    return count;
  }
}

}
