using System;

namespace ScaleTrain {

/// <summary>An array that owns its memory, to pass between libraries (DLPack) without a copy.</summary>
public sealed class Tensor : Handle {
  internal readonly Native.Tensor native;
  internal override NativeHandle Safe { get { return native.handle; } }

  private Tensor(Native.Tensor made, Context context) {
    native = made;
    Safe.KeepWhat(context.Safe);
  }

  /// <summary>Allocates zeroed memory of the library, aligned to 64 bytes: the host's, or that of the context's device if it has its
  /// own.</summary>
  [OfC("st_tensor_create")]
  public Tensor(Context context, DType dtype, params long[] dims)
    : this(new Native.Tensor(Given(context, "context").native, (int)dtype, Writing.Of(dims)), context) {}

  /// <summary>Wraps an array of the program, which stays pinned until the tensor and every DLPack of it is gone.</summary>
  [OfC("st_tensor_wrap")]
  public static Tensor Wrap(Context context, View memory) {
    NativeHandle open = Given(context, "context").Safe.Open;
    Pins pins = Pins.Hold(new[] { Given(memory, "memory") }, "memory", false);
    return new Tensor(Native.Tensor.wrap(context.native, pins.First, Bridge.Strong(open, pins)), context);
  }

  /// <summary>Takes ownership of a <c>DLManagedTensor*</c> in the host's memory or in that of the context's device, for example from
  /// TorchSharp. If this throws, ownership stays with the caller.</summary>
  [OfC("st_tensor_from_dlpack")]
  public static Tensor FromDlpack(Context context, IntPtr managed) {
    if (managed == IntPtr.Zero) throw new InvalidArgumentException("managed is null");
    return new Tensor(Native.native.tensor_of_dlpack(Given(context, "context").native, managed), context);
  }

  /// <summary>The same for elements that <paramref name="stream"/> writes before: the context's stream waits for it on the device. -1: no
  /// waiting.</summary>
  [OfC("st_tensor_from_dlpack_on")]
  public static Tensor FromDlpack(Context context, IntPtr managed, long stream) {
    if (managed == IntPtr.Zero) throw new InvalidArgumentException("managed is null");
    return new Tensor(Native.native.tensor_of_dlpack_on(Given(context, "context").native, managed, stream), context);
  }

  /// <summary>A new <c>DLManagedTensor*</c> over the same memory. The receiver must call its deleter, which releases the memory.</summary>
  [OfC("st_tensor_to_dlpack")]
  public IntPtr ToDlpack() { return native.dlpack(); }

  /// <summary>The same for a receiver that uses the memory on <paramref name="stream"/>, which waits for the context's stream on the
  /// device. -1: no waiting.</summary>
  [OfC("st_tensor_to_dlpack_on")]
  public IntPtr ToDlpack(long stream) { return native.dlpack_on(stream); }

  /// <summary>Whose memory it is: 0 the host's, n that of device n - 1.</summary>
  [OfC("st_tensor_dlpack_device")]
  public int Device { get { return native.device_type() == Cuda ? native.device_index() + 1 : 0; } }

  /// <summary>The type of the elements.</summary>
  public DType DType { get { return Described(native.place(), out long[] dims, out long bytes, out IntPtr address); } }

  /// <summary>The dims, outermost first.</summary>
  public long[] Dims {
    get {
      Described(native.place(), out long[] dims, out long bytes, out IntPtr address);
      return dims;
    }
  }

  /// <summary>The address of the memory, valid until the tensor is disposed.</summary>
  public IntPtr Address {
    get {
      Described(native.place(), out long[] dims, out long bytes, out IntPtr address);
      return address;
    }
  }

  /// <summary>The elements in place. T is the C# type of the dtype: float, double, int, long, byte or bool; ushort for bf16 and f16. The
  /// memory stays valid as long as the returned <c>Memory</c> is referenced, even after <see cref="Handle.Dispose"/>. Keep the
  /// <c>Memory</c> as long as its spans.</summary>
  [OfC("st_tensor_view")]
  public Memory<T> Memory<T>() where T : struct {
    RequireHost();
    DTypes.RequireFit(Describe(out long[] dims, out long bytes, out IntPtr address), typeof(T));
    return new NativeMemory<T>(Safe.Open, address, ScaleTrain.View.SizeOf(dims)).Memory;
  }

  /// <summary>A copy of the elements.</summary>
  public T[] ToArray<T>() where T : struct {
    RequireHost();
    DTypes.RequireFit(Describe(out long[] dims, out long bytes, out IntPtr address), typeof(T));
    return NativeMemory<T>.Copy(Safe.Open, address, ScaleTrain.View.SizeOf(dims));
  }

  /// <summary>The memory as a view, for calls that take arrays. Like <see cref="Memory{T}"/> and <see cref="ToArray{T}"/> it refuses a
  /// tensor whose strides are not row-major without gaps.</summary>
  public View View() {
    DType dtype = Describe(out long[] dims, out long bytes, out IntPtr address);
    return ScaleTrain.View.Owned(new OwnedMemory(Safe, address), dtype, dims, bytes).OnDevice(Device);
  }

  private const int Cuda = 2;  // kDLCUDA

  private void RequireHost() {
    if (Device != 0)
      throw new UnsupportedException("the tensor is in the memory of a device, which the program cannot read; pass it to a call, or as "
                                     + "DLPack to a library that can");
  }

  /// <summary>The memory, which must be row-major without gaps.</summary>
  private DType Describe(out long[] dims, out long bytes, out IntPtr address) {
    return Described(native.memory(), out dims, out bytes, out address);
  }

  private static DType Described(Record record, out long[] dims, out long bytes, out IntPtr address) {
    record.Integer();  // the count, 1
    record.Text();     // the name, empty
    return NativeArrays.Next(ref record, out dims, out bytes, out address);
  }
}

/// <summary>Reads descriptions of native memory, as native/record.hpp writes them.</summary>
internal static class NativeArrays {
  internal static DType Next(ref Record record, out long[] dims, out long bytes, out IntPtr address) {
    var dtype = (DType)record.Integer();
    dims = record.Integers();
    bytes = record.Integer();
    address = new IntPtr(record.Integer());
    return dtype;
  }

  /// <summary>A copy of the elements in a C# array; zeros if the address is zero.</summary>
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
