using System;
using System.Runtime.ExceptionServices;
using System.Runtime.InteropServices;
using System.Threading;

namespace ScaleTrain {

/// <summary>The static methods that native code calls (native/managed.hpp has the same table), and handles for their targets. Each method returns
/// zero, or a handle of the exception that was thrown.</summary>
internal static unsafe class Bridge {
  [UnmanagedFunctionPointer(CallingConvention.Cdecl)] internal delegate void ReleaseCall(IntPtr handle);
  [UnmanagedFunctionPointer(CallingConvention.Cdecl)] internal delegate void FailCall(int status, IntPtr record);
  [UnmanagedFunctionPointer(CallingConvention.Cdecl)] internal delegate IntPtr StepCall(IntPtr user, IntPtr report, int* goesOn);
  [UnmanagedFunctionPointer(CallingConvention.Cdecl)] internal delegate IntPtr TokenCall(IntPtr user, int token, int* goesOn);
  [UnmanagedFunctionPointer(CallingConvention.Cdecl)] internal delegate IntPtr RateCall(IntPtr user, long step, double* rate);
  [UnmanagedFunctionPointer(CallingConvention.Cdecl)] internal delegate IntPtr LogCall(IntPtr user, int level, IntPtr area, IntPtr text);
  [UnmanagedFunctionPointer(CallingConvention.Cdecl)] internal delegate IntPtr ParallelCall(IntPtr user, long n, IntPtr task);
  [UnmanagedFunctionPointer(CallingConvention.Cdecl)] internal delegate IntPtr WriteCall(IntPtr user, byte* bytes, long count);
  [UnmanagedFunctionPointer(CallingConvention.Cdecl)] internal delegate IntPtr ReadCall(IntPtr user, byte* bytes, long room, long* count);
  [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
  internal delegate IntPtr MoveCall(IntPtr user, int other, byte* bytes, long count, long* moved, byte* reason, int room);
  [UnmanagedFunctionPointer(CallingConvention.Cdecl)] internal delegate IntPtr FillCall(IntPtr user, long count, long* rows, long n, RawView* views);
  [UnmanagedFunctionPointer(CallingConvention.Cdecl)] internal delegate IntPtr ShapeCall(IntPtr user, long n, RawView* inputs, long m, RawView* outputs);
  [UnmanagedFunctionPointer(CallingConvention.Cdecl)] internal delegate IntPtr ForwardCall(IntPtr user, long n, RawView* inputs, long m, RawView* outputs);
  [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
  internal delegate IntPtr BackwardCall(IntPtr user, long n, RawView* inputs, long m, RawView* outputs, RawView* dOutputs, RawView* dInputs);
  [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
  internal delegate IntPtr StageCall(IntPtr user, int phase, int part, int chunk, int microBatch, RawView* views);

  // Never collected: native code holds their addresses.
  private static readonly Delegate[] table = {
    new ReleaseCall(Release), new FailCall(Fail), new ReleaseCall(Rethrow), new StepCall(Callbacks.Step), new TokenCall(Callbacks.Token),
    new RateCall(Callbacks.Rate), new LogCall(Callbacks.Log), new ParallelCall(Callbacks.Parallel), new WriteCall(Callbacks.Write), new ReadCall(Callbacks.Read),
    new MoveCall(Callbacks.WriteTo), new MoveCall(Callbacks.ReadFrom),
    new FillCall(Callbacks.Fill), new ShapeCall(HostOps.Shape), new ForwardCall(HostOps.Forward), new BackwardCall(HostOps.Backward),
    new StageCall(Stages.Work)
  };

  internal static void Begin() {
    var functions = new IntPtr[table.Length];
    for (int i = 0; i < functions.Length; ++i) functions[i] = Marshal.GetFunctionPointerForDelegate(table[i]);
    fixed (IntPtr* first = functions) ScaleTrain.Native.native.give((IntPtr)first);
    AppDomain.CurrentDomain.ProcessExit += (sender, arguments) => ProgramEnd.Come();
  }

  /// <summary>A strong handle of target, which native code frees; zero for null. Throws if the callee is disposed.</summary>
  internal static IntPtr Strong(NativeHandle callee, object target) { return callee.Open == null ? IntPtr.Zero : Strong(target); }

  private static IntPtr Strong(object target) { return target == null ? IntPtr.Zero : GCHandle.ToIntPtr(GCHandle.Alloc(target)); }

  /// <summary>A weak handle, for an object that <see cref="NativeHandle.Keep"/> keeps alive. Throws if the callee is disposed.</summary>
  internal static IntPtr Weak(NativeHandle callee, object target) { return callee.Open == null ? IntPtr.Zero : Weak(target); }

  /// <summary>A weak handle, for an object that <see cref="NativeHandle.Keep"/> keeps alive.</summary>
  internal static IntPtr Weak(object target) { return target == null ? IntPtr.Zero : GCHandle.ToIntPtr(GCHandle.Alloc(target, GCHandleType.Weak)); }

  /// <summary>The object of a handle.</summary>
  internal static T Target<T>(IntPtr user) where T : class {
    return (T)GCHandle.FromIntPtr(user).Target ?? throw new InvalidHandleException("the object that this callback belongs to has been garbage-collected");
  }

  /// <summary>Passes an exception through native code, as a handle.</summary>
  internal static IntPtr Thrown(Exception exception) {
    if (exception is ThreadAbortException) Thread.ResetAbort();  // the abort must not unwind native code; it is thrown again afterwards
    // For callers that the exception does not reach.
    Native.native.say_why(exception.GetType().Name + ": " + exception.Message.Replace('\0', ' '));
    return Strong(ExceptionDispatchInfo.Capture(exception));
  }

  [MonoPInvokeCallback(typeof(ReleaseCall))]
  private static void Release(IntPtr handle) {
    GCHandle held = GCHandle.FromIntPtr(handle);
    object target = held.Target;
    held.Free();
    (target as Pins)?.Drop();
  }

  [MonoPInvokeCallback(typeof(FailCall))]
  private static void Fail(int status, IntPtr record) {
    try {
      Failure.Set(ExceptionDispatchInfo.Capture(ScaleTrainException.Of((Status)status, new Record(record))));
    } catch (Exception exception) {  // no memory for the message
      Failure.Set(ExceptionDispatchInfo.Capture(exception));
    }
  }

  [MonoPInvokeCallback(typeof(ReleaseCall))]
  private static void Rethrow(IntPtr thrown) { Failure.Set((ExceptionDispatchInfo)GCHandle.FromIntPtr(thrown).Target); }
}

}
