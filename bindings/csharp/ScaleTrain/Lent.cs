using System;

namespace ScaleTrain {

/// <summary>An array of the library's that a callback may use while it runs. A span cannot outlive the call, and asking for one later is an
/// <see cref="InvalidHandleException"/>; keep a copy of what is wanted longer.</summary>
public sealed unsafe class Lent {
  private readonly RawView* raw;
  private readonly long size;  // dims are an array, and whoever gets them may write to them
  private volatile bool isOver;

  internal Lent(RawView* raw, bool isReadOnly) {
    this.raw = raw;
    IsReadOnly = isReadOnly;
    DType = (DType)raw->DType;
    Dims = RawView.DimsOf(raw);
    size = View.SizeOf(Dims);
  }

  /// <summary>What its elements are.</summary>
  public DType DType { get; }
  /// <summary>Its dims, outermost first.</summary>
  public long[] Dims { get; }
  /// <summary>Number of elements.</summary>
  public int Size { get { return checked((int)size); } }
  /// <summary>Whether it is to be read only: <see cref="Read{T}"/>.</summary>
  public bool IsReadOnly { get; }

  /// <summary>Its elements, to be written: float, double, int, long, byte, bool as its dtype is; bf16 and f16 as ushort.</summary>
  public Span<T> As<T>() where T : struct {
    if (IsReadOnly) throw new InvalidArgumentException("this array is an input of the call, and is only read: Read<T>()");
    return new Span<T>(Address(typeof(T)), Size);
  }

  /// <summary>Its elements. (A program compiled by Mono's mcs that runs on .NET takes <see cref="ToArray{T}"/>: that compiler's index of a ReadOnlySpan is
  /// not there.)</summary>
  public ReadOnlySpan<T> Read<T>() where T : struct { return new ReadOnlySpan<T>(Address(typeof(T)), Size); }

  /// <summary>A copy of its elements, to keep.</summary>
  public T[] ToArray<T>() where T : struct { return Read<T>().ToArray(); }

  /// <summary>A float array's elements, to be written.</summary>
  public Span<float> Floats { get { return As<float>(); } }

  private void* Address(Type type) {
    if (isOver) throw new InvalidHandleException("the array was lent for a call that has ended; keep a copy of it instead");
    DTypes.RequireFit(DType, type);
    return (void*)raw->Data;
  }

  internal void End() { isOver = true; }

  /// <summary>So many, null where there is no array.</summary>
  internal static Lent[] Of(long count, RawView* raw, bool isReadOnly) {
    var all = new Lent[count];
    for (int i = 0; i < all.Length; ++i)
      if (raw[i].Data != IntPtr.Zero || View.SizeOf(RawView.DimsOf(raw + i)) == 0) all[i] = new Lent(raw + i, isReadOnly);
    return all;
  }

  internal static void End(Lent[] all) {
    if (all == null) return;
    foreach (Lent one in all)
      if (one != null) one.End();
  }
}

}
