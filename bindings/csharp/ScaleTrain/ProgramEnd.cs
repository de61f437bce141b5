using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.InteropServices;
using System.Threading;

namespace ScaleTrain {

/// <summary>What happens at the program's end to what is open: calls that run are cancelled, and the runtime is not called any more.</summary>
/// <remarks>Mono waits at its end for every thread that has called it, those of the library's too, which live as long as their trainer. So there all
/// objects are given back; and where that cannot be, since the program is ended from inside of a callback, the process ends here.</remarks>
internal static class ProgramEnd {
  private static readonly bool isMono = Type.GetType("Mono.Runtime") != null;
  private static readonly List<WeakReference<Handle>> contexts = new List<WeakReference<Handle>>();
  private static readonly List<WeakReference<NativeHandle>> handles = new List<WeakReference<NativeHandle>>();
  private static int looked = 1000;
  private static volatile bool hasCome;
  [ThreadStatic] private static bool isMine;  // this thread ends the program

  internal static void Watch(Context context) {
    lock (contexts) {
      contexts.RemoveAll(one => !one.TryGetTarget(out Handle open) || open.IsDisposed);
      contexts.Add(new WeakReference<Handle>(context));
    }
  }

  internal static void Watch(NativeHandle handle) {
    if (!isMono) return;
    lock (handles) {
      handles.Add(new WeakReference<NativeHandle>(handle));
      if (handles.Count < looked) return;
      handles.RemoveAll(one => !one.TryGetTarget(out NativeHandle open) || open.IsClosed);
      looked = 1000 + 2 * handles.Count;
    }
  }

  internal static void Come() {
    isMine = true;
    hasCome = true;
    CancelAll();
    Native.native.end_of_runtime();
    if (!isMono || Native.native.guests() == 0) return;
    NativeHandle[] open;
    lock (handles) open = handles.Select(one => one.TryGetTarget(out NativeHandle handle) ? handle : null).Where(handle => handle != null).ToArray();
    foreach (NativeHandle handle in open) handle.End();
    for (int i = 0; i < 200 && Native.native.guests() > 0; ++i) Thread.Sleep(1);
    if (Native.native.guests() == 0) return;
    Console.Out.Flush();
    Console.Error.Flush();
    _exit(Environment.ExitCode);
  }

  /// <summary>Before a failed call throws. In a background thread that nobody waits for, the cancel above would be an unhandled exception of a program
  /// that ends well: it is not thrown while the program ends. A handler of the program's own that waits for the thread gets it all the same.</summary>
  internal static void HoldBack() {
    if (hasCome && !isMine) Thread.Sleep(2000);
  }

  private static void CancelAll() {
    Handle[] open;
    lock (contexts) open = contexts.Select(one => one.TryGetTarget(out Handle context) ? context : null).Where(context => context != null).ToArray();
    foreach (Handle context in open)
      try { ((Context)context).Cancel(); } catch (ScaleTrainException) {}  // disposed of
  }

  [DllImport("libc.so.6")] private static extern void _exit(int status);
}

}
