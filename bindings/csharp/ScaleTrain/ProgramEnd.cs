using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.InteropServices;
using System.Threading;

namespace ScaleTrain {

/// <summary>At the end of the program, cancels running calls and stops native code from calling the runtime.</summary>
/// <remarks>At its end, Mono waits for every thread that has called it, including the library's threads, which live as long as their trainer. So
/// on Mono all objects are released. If that is impossible, because the program is being ended from inside a callback, the process exits
/// here.</remarks>
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

  /// <summary>Called before a failed call throws. On a background thread the cancel above would be an unhandled exception in a program that ends
  /// normally, so the throw is delayed while the program ends. A handler of the program that waits for this thread still receives the
  /// exception.</summary>
  internal static void HoldBack() {
    if (hasCome && !isMine) Thread.Sleep(2000);
  }

  private static void CancelAll() {
    Handle[] open;
    lock (contexts) open = contexts.Select(one => one.TryGetTarget(out Handle context) ? context : null).Where(context => context != null).ToArray();
    foreach (Handle context in open)
      try { ((Context)context).Cancel(); } catch (ScaleTrainException) {}  // disposed
  }

  [DllImport("libc.so.6")] private static extern void _exit(int status);
}

}
