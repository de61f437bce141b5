using System;
using System.Buffers;
using System.Runtime.InteropServices;

namespace ScaleTrain {

/// <summary>A view of an array of the program: dtype, dims and memory. The memory is pinned while the library uses it and is never copied. Every
/// C# array (<c>float[]</c>, <c>float[,]</c>, <c>int[]</c>) and every <c>Memory&lt;float&gt;</c> converts to a view with its own dims;
/// <see cref="Reshape"/> gives it other dims.</summary>
/// <example><code>
/// var x = new float[64 * 2];
/// trainer.Step(new Batch { { "x", x, 64, 2 }, { "y", y, 64, 1 } });
/// optimizer.Step(gradientOfA, gradientOfB);
/// </code></example>
public sealed class View {
  private readonly object source;    // an array, a Pinnable, or null for memory that the program keeps in place
  private readonly long offset;      // in bytes from the source's first element; without a source, the address
  private readonly long[] dims;
  private readonly long[] strides;   // in elements; null for row-major without gaps

  private View(object source, long offset, DType dtype, long[] dims, long[] strides, long bytes, bool isReadOnly, int device = 0) {
    if (dims.Length > RawView.MaxRank) throw new InvalidArgumentException("the rank must be at most " + RawView.MaxRank + ", got " + dims.Length);
    this.source = source;
    this.offset = offset;
    this.dims = dims;
    this.strides = strides;
    DType = dtype;
    Bytes = bytes;
    IsReadOnly = isReadOnly;
    Device = device;
  }

  /// <summary>The type of the elements.</summary>
  public DType DType { get; }
  /// <summary>The dims, outermost first.</summary>
  public long[] Dims { get { return (long[])dims.Clone(); } }
  /// <summary>Number of elements.</summary>
  public long Size { get { return SizeOf(dims); } }
  /// <summary>Size in bytes of the memory that the view may access.</summary>
  public long Bytes { get; }
  /// <summary>Whether calls that would write to it refuse it.</summary>
  public bool IsReadOnly { get; }
  /// <summary>Whose memory it is: 0 the host's, n that of device n - 1.</summary>
  public int Device { get; }

  /// <summary>A C# array of any rank, with these dims; without dims, with its own.</summary>
  public static View Of(Array array, params long[] dims) {
    if (array == null) throw new InvalidArgumentException("an array is null");
    DType dtype = DTypes.Require(array.GetType().GetElementType());
    var own = new long[array.Rank];
    for (int i = 0; i < own.Length; ++i) own[i] = array.GetLongLength(i);
    return Whole(array, dtype, own).Reshaped(dims);
  }

  /// <summary>The elements of a <c>Memory</c>, with these dims; without dims, with rank 1.</summary>
  public static View Of<T>(Memory<T> memory, params long[] dims) where T : struct {
    return Whole(new PinnableMemory<T>(memory), DTypes.Require(typeof(T)), new[] { (long)memory.Length }).Reshaped(dims);
  }

  /// <summary>The same, read-only.</summary>
  public static View Of<T>(ReadOnlyMemory<T> memory, params long[] dims) where T : struct {
    return Of(MemoryMarshal.AsMemory(memory), dims).AsReadOnly();
  }

  /// <summary>bfloat16 elements from their bits.</summary>
  public static View Bf16(ushort[] bits, params long[] dims) { return OfBits(bits, DType.Bf16, dims); }

  /// <summary>IEEE half elements from their bits.</summary>
  public static View F16(ushort[] bits, params long[] dims) { return OfBits(bits, DType.F16, dims); }

  /// <summary>Memory at an address, row-major without gaps. The program must keep it in place and alive as long as the library uses it.</summary>
  public static View At(IntPtr address, DType dtype, params long[] dims) {
    if (dims == null) throw new InvalidArgumentException("dims is null");
    return new View(null, address.ToInt64(), dtype, (long[])dims.Clone(), null, checked(SizeOf(dims) * DTypes.BytesOf(dtype)), false);
  }

  /// <summary>The same memory with other dims; the number of elements must not change.</summary>
  public View Reshape(params long[] dims) {
    if (dims == null) throw new InvalidArgumentException("dims is null");
    if (SizeOf(dims) != Size) throw new InvalidArgumentException("Reshape: " + Text(dims) + " has " + SizeOf(dims) + " elements, the array " + Text(this.dims) + " has " + Size);
    if (strides != null) throw new InvalidArgumentException("Reshape: a strided array cannot be reshaped; call Reshape before Strided");
    return new View(source, offset, DType, (long[])dims.Clone(), null, Bytes, IsReadOnly, Device);
  }

  /// <summary>A strided view of the same memory that starts at element <paramref name="first"/>. strides has one stride per dim, in
  /// elements.</summary>
  public View Strided(long first, long[] dims, long[] strides) {
    Handle.Given(dims, "dims");
    Handle.Given(strides, "strides");
    if (this.strides != null) throw new InvalidArgumentException("Strided: the view already has strides; use the view of the whole array");
    if (strides.Length != dims.Length) throw new InvalidArgumentException("Strided: " + dims.Length + " dims need " + dims.Length + " strides, got " + strides.Length);
    bool isEmpty = SizeOf(dims) == 0;
    long least = first, most = first;
    for (int i = 0; i < dims.Length && !isEmpty; ++i) {
      if (dims[i] > 1 && (strides[i] > Bytes || strides[i] < -Bytes || dims[i] > Bytes)) most = Bytes;  // out of range; avoids overflow of the sum
      else if (strides[i] < 0) least += (dims[i] - 1) * strides[i];
      else most += (dims[i] - 1) * strides[i];
    }
    long element = DTypes.BytesOf(DType);
    if (first < 0 || first > Bytes / element || !isEmpty && (least < 0 || most >= Bytes / element))
      throw new InvalidArgumentException("dims " + Text(dims) + " with strides " + Text(strides) + " from element " + first + " reach beyond the array, which has " + Bytes / element + " elements");
    return new View(source, offset + first * element, DType, (long[])dims.Clone(), (long[])strides.Clone(), Bytes - first * element, IsReadOnly, Device);
  }

  /// <summary>The same memory, read-only: calls that would write to it refuse it.</summary>
  public View AsReadOnly() { return new View(source, offset, DType, dims, strides, Bytes, true, Device); }

  /// <summary>The same view, saying whose memory it is: 0 the host's, n that of device n - 1, with the address that <see cref="At"/> was given. A
  /// call refuses a device that its context does not have, and most take 0 only.</summary>
  public View OnDevice(int device) { return new View(source, offset, DType, dims, strides, Bytes, IsReadOnly, device); }

  /// <summary>A copy converted to another dtype, for a call that takes only that one: double to float, long to int, and so on. Integers must fit
  /// the new dtype; conversion to a floating dtype rounds to nearest.</summary>
  [OfC("st_view_convert")]
  public View To(DType dtype) {
    View made = NativeArrays.Copy(dtype, dims, IntPtr.Zero);
    using (Pins from = Pins.Borrow(this, "this"))
      using (Pins to = Pins.Borrow(made, "to")) Native.native.convert(from.First, to.First);
    return made;
  }

  /// <summary>The elements of a C# array or Memory without strides.</summary>
  public Span<T> As<T>() where T : struct {
    DTypes.RequireFit(DType, typeof(T));
    if (strides != null || offset != 0) throw new InvalidArgumentException("As: a strided view has no span; use the span of the array");
    if (source is T[] array) return array;
    if (source is PinnableMemory<T> memory) return memory.Memory.Span;
    throw new InvalidArgumentException("As: only a T[] or Memory<T> has a span of T");
  }

  /// <summary>A C# array with its own dims.</summary>
  public static implicit operator View(Array array) { return array == null ? null : Of(array); }
  /// <summary>A Memory with rank 1.</summary>
  public static implicit operator View(Memory<float> memory) { return Of(memory); }
  /// <summary>A Memory with rank 1.</summary>
  public static implicit operator View(Memory<double> memory) { return Of(memory); }
  /// <summary>A Memory with rank 1.</summary>
  public static implicit operator View(Memory<int> memory) { return Of(memory); }
  /// <summary>A Memory with rank 1.</summary>
  public static implicit operator View(Memory<long> memory) { return Of(memory); }
  /// <summary>A Memory with rank 1, read-only.</summary>
  public static implicit operator View(ReadOnlyMemory<float> memory) { return Of(memory); }
  /// <summary>A Memory with rank 1, read-only.</summary>
  public static implicit operator View(ReadOnlyMemory<int> memory) { return Of(memory); }
  /// <summary>The memory of a tensor.</summary>
  public static implicit operator View(Tensor tensor) { return tensor == null ? null : tensor.View(); }

  /// <summary>Dtype and dims in readable form.</summary>
  public override string ToString() { return DType + Text(dims); }

  internal static View Owned(Pinnable owner, DType dtype, long[] dims, long bytes) { return new View(owner, 0, dtype, dims, null, bytes, false); }

  /// <summary>Pins the memory and describes it for native code.</summary>
  internal unsafe void Describe(RawView* raw, out Pin pin) {
    pin = Pin.Of(source);
    raw->DType = (int)DType;
    raw->Rank = dims.Length;
    raw->Writable = IsReadOnly ? 0 : 1;
    raw->HasStrides = strides == null ? 0 : 1;
    for (int i = 0; i < dims.Length; ++i) raw->Dims[i] = dims[i];
    if (strides != null)
      for (int i = 0; i < strides.Length; ++i) raw->Strides[i] = strides[i];
    raw->Data = new IntPtr(pin.Address.ToInt64() + offset);
    raw->Bytes = Bytes;
    raw->Name = IntPtr.Zero;
    raw->Device = Device;
    raw->Reserved = 0;
  }

  internal long Rows(string name) {
    if (dims.Length == 0) throw new InvalidArgumentException(name + ": the array has rank 0; the first dimension must be the rows");
    return dims[0];
  }

  internal static long SizeOf(long[] dims) {
    long size = 1;
    foreach (long dim in dims) {
      if (dim < 0) throw new InvalidArgumentException("dims must be 0 or more, got " + Text(dims));
      if (dim != 0 && size > long.MaxValue / dim / 8) throw new InvalidArgumentException("dims " + Text(dims) + " have too many elements: their size in bytes does not fit in 64 bits");
      size *= dim;
    }
    return size;
  }

  internal static string Text(long[] dims) { return "[" + string.Join(", ", dims) + "]"; }

  private static View OfBits(ushort[] bits, DType dtype, long[] dims) {
    if (bits == null) throw new InvalidArgumentException("an array is null");
    return Whole(bits, dtype, new[] { (long)bits.Length }).Reshaped(dims);
  }

  private static View Whole(object source, DType dtype, long[] dims) {
    return new View(source, 0, dtype, dims, null, SizeOf(dims) * DTypes.BytesOf(dtype), false);
  }

  private View Reshaped(long[] dims) { return dims == null || dims.Length == 0 ? this : Reshape(dims); }
}

/// <summary>Memory that is not an array and is pinned in another way.</summary>
internal abstract class Pinnable {
  internal abstract MemoryHandle Pin();
}

internal sealed class PinnableMemory<T> : Pinnable where T : struct {
  internal PinnableMemory(Memory<T> memory) { Memory = memory; }
  internal Memory<T> Memory { get; }
  internal override MemoryHandle Pin() { return Memory.Pin(); }
}

}
