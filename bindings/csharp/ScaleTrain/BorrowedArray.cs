using System;

namespace ScaleTrain {

/// <summary>An array of the library, borrowed by a callback and valid while the callback runs. Later calls throw
/// <see cref="InvalidHandleException"/>. Copy the elements to keep them.</summary>
public sealed unsafe class BorrowedArray {
  private readonly RawView* raw;
  private readonly long size;  // kept apart from Dims, which callers can modify
  private volatile bool isOver;

  internal BorrowedArray(RawView* raw, bool isReadOnly) {
    this.raw = raw;
    IsReadOnly = isReadOnly;
    DType = (DType)raw->DType;
    Dims = RawView.DimsOf(raw);
    size = View.SizeOf(Dims);
  }

  /// <summary>The type of the elements.</summary>
  public DType DType { get; }
  /// <summary>The dims, outermost first.</summary>
  public long[] Dims { get; }
  /// <summary>Number of elements.</summary>
  public int Size { get { return checked((int)size); } }
  /// <summary>Whether the callback may only read it, with <see cref="Read{T}"/>.</summary>
  public bool IsReadOnly { get; }

  /// <summary>The elements, for writing. T is the C# type of the dtype: float, double, int, long, byte or bool; ushort for bf16 and f16.</summary>
  public Span<T> As<T>() where T : struct {
    if (IsReadOnly) throw new InvalidArgumentException("this borrowed array is read-only; use Read<T>()");
    return new Span<T>(Address(typeof(T)), Size);
  }

  /// <summary>The elements, for reading. A program that Mono's mcs compiled and that runs on .NET must use <see cref="ToArray{T}"/> instead: mcs
  /// compiles the indexer of ReadOnlySpan to a method that .NET does not have.</summary>
  public ReadOnlySpan<T> Read<T>() where T : struct { return new ReadOnlySpan<T>(Address(typeof(T)), Size); }

  /// <summary>A copy of the elements.</summary>
  public T[] ToArray<T>() where T : struct { return Read<T>().ToArray(); }

  /// <summary>The elements of a float array, for writing.</summary>
  public Span<float> Floats { get { return As<float>(); } }

  private void* Address(Type type) {
    if (isOver) throw new InvalidHandleException("an array borrowed by a callback may not be used after the callback has returned; keep a copy instead");
    DTypes.RequireFit(DType, type);
    return (void*)raw->Data;
  }

  internal void End() { isOver = true; }

  /// <summary>The arrays of count views; null for a view without memory.</summary>
  internal static BorrowedArray[] Of(long count, RawView* raw, bool isReadOnly) {
    var all = new BorrowedArray[count];
    for (int i = 0; i < all.Length; ++i)
      if (raw[i].Data != IntPtr.Zero || View.SizeOf(RawView.DimsOf(raw + i)) == 0) all[i] = new BorrowedArray(raw + i, isReadOnly);
    return all;
  }

  internal static void End(BorrowedArray[] all) {
    if (all == null) return;
    foreach (BorrowedArray one in all)
      if (one != null) one.End();
  }
}

}
