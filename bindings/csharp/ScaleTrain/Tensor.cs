using System;

namespace ScaleTrain {

/// <summary>An array with an owner, to hand between libraries without a copy.</summary>
public sealed class Tensor : Handle {
  internal readonly Native.Tensor native;
  internal override NativeHandle Safe { get { return native.handle; } }

  private Tensor(Native.Tensor made, Context context) {
    native = made;
    Safe.KeepWhat(context.Safe);
  }

  /// <summary>The library's memory, all zero, 64-byte aligned.</summary>
  [OfC("st_tensor_create")]
  public Tensor(Context context, DType dtype, params long[] dims)
    : this(new Native.Tensor(Given(context, "context").native, (int)dtype, Writing.Of(dims)), context) {}

  /// <summary>Over an array of the program's, which is pinned until the tensor and all that sees it is gone.</summary>
  [OfC("st_tensor_wrap")]
  public static Tensor Wrap(Context context, View memory) {
    NativeHandle open = Given(context, "context").Safe.Open;
    Pins pins = Pins.Hold(new[] { Given(memory, "memory") }, "memory", false);
    return new Tensor(Native.Tensor.wrap(context.native, pins.First, Bridge.Strong(open, pins)), context);
  }

  /// <summary>Takes a <c>DLManagedTensor*</c> of the CPU's memory over (TorchSharp and others give them); not when this throws.</summary>
  [OfC("st_tensor_from_dlpack")]
  public static Tensor FromDlpack(Context context, IntPtr managed) {
    if (managed == IntPtr.Zero) throw new InvalidArgumentException("managed is null");
    return new Tensor(Native.native.tensor_of_dlpack(Given(context, "context").native, managed), context);
  }

  /// <summary>A new <c>DLManagedTensor*</c> over the same memory. Its deleter, which whoever takes it calls, gives the memory up.</summary>
  [OfC("st_tensor_to_dlpack")]
  public IntPtr ToDlpack() { return native.dlpack(); }

  /// <summary>What its elements are.</summary>
  public DType DType { get { return Describe(out long[] dims, out long bytes, out IntPtr address); } }

  /// <summary>Outermost first.</summary>
  public long[] Dims {
    get {
      Describe(out long[] dims, out long bytes, out IntPtr address);
      return dims;
    }
  }

  /// <summary>Where it lies, while the tensor is not disposed of.</summary>
  public IntPtr Address {
    get {
      Describe(out long[] dims, out long bytes, out IntPtr address);
      return address;
    }
  }

  /// <summary>Its elements, where they lie: float, double, int, long, byte, bool as its dtype is; bf16 and f16 as ushort. Keeps the memory in
  /// place, also after <see cref="Handle.Dispose"/>, while this <c>Memory</c> is held: hold on to it as long as to spans of it.</summary>
  [OfC("st_tensor_view")]
  public Memory<T> Memory<T>() where T : struct {
    DTypes.RequireFit(Describe(out long[] dims, out long bytes, out IntPtr address), typeof(T));
    return new NativeMemory<T>(Safe.Open, address, ScaleTrain.View.SizeOf(dims)).Memory;
  }

  /// <summary>A copy of its elements.</summary>
  public T[] ToArray<T>() where T : struct {
    DTypes.RequireFit(Describe(out long[] dims, out long bytes, out IntPtr address), typeof(T));
    return NativeMemory<T>.Copy(Safe.Open, address, ScaleTrain.View.SizeOf(dims));
  }

  /// <summary>For calls that take arrays.</summary>
  public View View() {
    DType dtype = Describe(out long[] dims, out long bytes, out IntPtr address);
    return ScaleTrain.View.Owned(new OwnedMemory(Safe, address), dtype, dims, bytes);
  }

  private DType Describe(out long[] dims, out long bytes, out IntPtr address) {
    Record told = native.memory();
    told.Integer();  // one view
    told.Text();     // without a name
    return NativeArrays.Next(ref told, out dims, out bytes, out address);
  }
}

/// <summary>Where native memory lies, as native/record.hpp tells it.</summary>
internal static class NativeArrays {
  internal static DType Next(ref Record told, out long[] dims, out long bytes, out IntPtr address) {
    var dtype = (DType)told.Integer();
    dims = told.Integers();
    bytes = told.Integer();
    address = new IntPtr(told.Integer());
    return dtype;
  }

  /// <summary>Its elements in an array of C#'s; all zero of no address.</summary>
  internal static View Copy(DType dtype, long[] dims, IntPtr address) {
    long size = View.SizeOf(dims);
    switch (dtype) {
      case DType.F32: return View.Of(Filled(new float[size], address), dims);
      case DType.F64: return View.Of(Filled(new double[size], address), dims);
      case DType.I32: return View.Of(Filled(new int[size], address), dims);
      case DType.I64: return View.Of(Filled(new long[size], address), dims);
      case DType.U8: return View.Of(Filled(new byte[size], address), dims);
      case DType.Bool: return View.Of(Filled(new bool[size], address), dims);
      case DType.Bf16: return View.Bf16(Filled(new ushort[size], address), dims);
      default: return View.F16(Filled(new ushort[size], address), dims);
    }
  }

  private static unsafe T[] Filled<T>(T[] to, IntPtr from) where T : struct {
    if (from != IntPtr.Zero) new ReadOnlySpan<T>((void*)from, to.Length).CopyTo(to);
    return to;
  }
}

}
