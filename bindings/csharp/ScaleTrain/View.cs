using System;
using System.Buffers;
using System.Runtime.InteropServices;

namespace ScaleTrain {

/// <summary>An array of the program's, where it lies: dtype, dims and memory. It is pinned while the library uses it, and never copied. Every
/// array of C#'s is one by itself, of its own dims: <c>float[]</c>, <c>float[,]</c>, <c>int[]</c>, and so is a <c>Memory&lt;float&gt;</c>;
/// <see cref="Reshape"/> says others.</summary>
/// <example><code>
/// var x = new float[64 * 2];
/// trainer.Step(new Batch { { "x", x, 64, 2 }, { "y", y, 64, 1 } });
/// optimizer.Step(gradientOfA, gradientOfB);
/// </code></example>
public sealed class View {
  private readonly object source;    // an array, or a Pinnable, or null: memory that the program keeps in place
  private readonly long offset;      // bytes behind the source's first element, or the address
  private readonly long[] dims;
  private readonly long[] strides;   // in elements; null: row-major without gaps

  private View(object source, long offset, DType dtype, long[] dims, long[] strides, long bytes, bool isReadOnly) {
    if (dims.Length > RawView.MaxRank) throw new InvalidArgumentException("rank " + dims.Length + " is above " + RawView.MaxRank);
    this.source = source;
    this.offset = offset;
    this.dims = dims;
    this.strides = strides;
    DType = dtype;
    Bytes = bytes;
    IsReadOnly = isReadOnly;
  }

  /// <summary>What its elements are.</summary>
  public DType DType { get; }
  /// <summary>Its dims, outermost first.</summary>
  public long[] Dims { get { return (long[])dims.Clone(); } }
  /// <summary>Number of elements.</summary>
  public long Size { get { return SizeOf(dims); } }
  /// <summary>Of the memory that it may touch.</summary>
  public long Bytes { get; }
  /// <summary>Whether calls that fill it refuse it.</summary>
  public bool IsReadOnly { get; }

  /// <summary>An array of C#'s of any rank, with these dims; none: its own.</summary>
  public static View Of(Array array, params long[] dims) {
    if (array == null) throw new InvalidArgumentException("an array is null");
    DType dtype = DTypes.Require(array.GetType().GetElementType());
    var own = new long[array.Rank];
    for (int i = 0; i < own.Length; ++i) own[i] = array.GetLongLength(i);
    return Whole(array, dtype, own).Reshaped(dims);
  }

  /// <summary>The elements of a <c>Memory</c>, with these dims; none: its length.</summary>
  public static View Of<T>(Memory<T> memory, params long[] dims) where T : struct {
    return Whole(new PinnableMemory<T>(memory), DTypes.Require(typeof(T)), new[] { (long)memory.Length }).Reshaped(dims);
  }

  /// <summary>The same, read only.</summary>
  public static View Of<T>(ReadOnlyMemory<T> memory, params long[] dims) where T : struct {
    return Of(MemoryMarshal.AsMemory(memory), dims).AsReadOnly();
  }

  /// <summary>bfloat16 elements, given by their bits.</summary>
  public static View Bf16(ushort[] bits, params long[] dims) { return OfBits(bits, DType.Bf16, dims); }

  /// <summary>IEEE half elements, given by their bits.</summary>
  public static View F16(ushort[] bits, params long[] dims) { return OfBits(bits, DType.F16, dims); }

  /// <summary>Memory at an address, row-major without gaps. The program keeps it in place and alive as long as the library uses it.</summary>
  public static View At(IntPtr address, DType dtype, params long[] dims) {
    if (dims == null) throw new InvalidArgumentException("dims is null");
    return new View(null, address.ToInt64(), dtype, (long[])dims.Clone(), null, checked(SizeOf(dims) * DTypes.BytesOf(dtype)), false);
  }

  /// <summary>The same memory with other dims of as many elements.</summary>
  public View Reshape(params long[] dims) {
    if (dims == null) throw new InvalidArgumentException("dims is null");
    if (SizeOf(dims) != Size) throw new InvalidArgumentException("an array of " + Text(this.dims) + " cannot be seen as " + Text(dims) + ": " + Size + " elements, not " + SizeOf(dims));
    if (strides != null) throw new InvalidArgumentException("an array with strides cannot be reshaped: reshape it first");
    return new View(source, offset, DType, (long[])dims.Clone(), null, Bytes, IsReadOnly);
  }

  /// <summary>Part of the same memory: these dims from element <paramref name="first"/> on, a stride in elements for each.</summary>
  public View Strided(long first, long[] dims, long[] strides) {
    Handle.Given(dims, "dims");
    Handle.Given(strides, "strides");
    if (this.strides != null) throw new InvalidArgumentException("an array with strides has them already: take the array's own view");
    if (strides.Length != dims.Length) throw new InvalidArgumentException("strides: " + strides.Length + " for " + dims.Length + " dims");
    bool isEmpty = SizeOf(dims) == 0;
    long least = first, most = first;
    for (int i = 0; i < dims.Length && !isEmpty; ++i) {
      if (dims[i] > 1 && (strides[i] > Bytes || strides[i] < -Bytes || dims[i] > Bytes)) most = Bytes;  // beyond, and no sum may overflow
      else if (strides[i] < 0) least += (dims[i] - 1) * strides[i];
      else most += (dims[i] - 1) * strides[i];
    }
    long element = DTypes.BytesOf(DType);
    if (first < 0 || first > Bytes / element || !isEmpty && (least < 0 || most >= Bytes / element))
      throw new InvalidArgumentException("dims " + Text(dims) + " with strides " + Text(strides) + " from element " + first + " on reach beyond the array, which has " + Bytes / element + " elements");
    return new View(source, offset + first * element, DType, (long[])dims.Clone(), (long[])strides.Clone(), Bytes - first * element, IsReadOnly);
  }

  /// <summary>The same memory; calls that would fill it refuse it.</summary>
  public View AsReadOnly() { return new View(source, offset, DType, dims, strides, Bytes, true); }

  /// <summary>A copy with elements of another dtype, for a call that takes that alone: integers that fit it, and anything that becomes
  /// floating, rounded to the nearest. float from double, int from long, and so on.</summary>
  [OfC("st_view_convert")]
  public View To(DType dtype) {
    View made = NativeArrays.Copy(dtype, dims, IntPtr.Zero);
    using (Pins from = Pins.Borrow(this, "this"))
      using (Pins to = Pins.Borrow(made, "to")) Native.native.convert(from.First, to.First);
    return made;
  }

  /// <summary>Its elements, of an array or memory of C#'s without strides.</summary>
  public Span<T> As<T>() where T : struct {
    DTypes.RequireFit(DType, typeof(T));
    if (strides != null || offset != 0) throw new InvalidArgumentException("a strided view has no span: take the array's own");
    if (source is T[] array) return array;
    if (source is PinnableMemory<T> memory) return memory.Memory.Span;
    throw new InvalidArgumentException("only a T[] or Memory<T> of C#'s has a span of T");
  }

  /// <summary>An array of C#'s, with its own dims.</summary>
  public static implicit operator View(Array array) { return array == null ? null : Of(array); }
  /// <summary>A Memory, as one dimension.</summary>
  public static implicit operator View(Memory<float> memory) { return Of(memory); }
  /// <summary>A Memory, as one dimension.</summary>
  public static implicit operator View(Memory<double> memory) { return Of(memory); }
  /// <summary>A Memory, as one dimension.</summary>
  public static implicit operator View(Memory<int> memory) { return Of(memory); }
  /// <summary>A Memory, as one dimension.</summary>
  public static implicit operator View(Memory<long> memory) { return Of(memory); }
  /// <summary>A Memory, as one dimension, read only.</summary>
  public static implicit operator View(ReadOnlyMemory<float> memory) { return Of(memory); }
  /// <summary>A Memory, as one dimension, read only.</summary>
  public static implicit operator View(ReadOnlyMemory<int> memory) { return Of(memory); }
  /// <summary>A tensor's own memory.</summary>
  public static implicit operator View(Tensor tensor) { return tensor == null ? null : tensor.View(); }

  /// <summary>For people: dtype and dims.</summary>
  public override string ToString() { return DType + Text(dims); }

  internal static View Owned(Pinnable owner, DType dtype, long[] dims, long bytes) { return new View(owner, 0, dtype, dims, null, bytes, false); }

  /// <summary>Pins it and says where it lies.</summary>
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
  }

  internal long Rows(string name) {
    if (dims.Length == 0) throw new InvalidArgumentException(name + ": the array has no dimension, so there are no rows");
    return dims[0];
  }

  internal static long SizeOf(long[] dims) {
    long size = 1;
    foreach (long dim in dims) {
      if (dim < 0) throw new InvalidArgumentException("dims " + Text(dims) + ": a negative one");
      if (dim != 0 && size > long.MaxValue / dim / 8) throw new InvalidArgumentException("dims " + Text(dims) + " are more than any memory");
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

/// <summary>Memory that is pinned by other means than an array's.</summary>
internal abstract class Pinnable {
  internal abstract MemoryHandle Pin();
}

internal sealed class PinnableMemory<T> : Pinnable where T : struct {
  internal PinnableMemory(Memory<T> memory) { Memory = memory; }
  internal Memory<T> Memory { get; }
  internal override MemoryHandle Pin() { return Memory.Pin(); }
}

}
