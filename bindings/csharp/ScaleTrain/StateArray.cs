using System;
using System.Collections.Generic;

namespace ScaleTrain {

/// <summary>An array of the state of an optimizer or an accumulator, in its own memory.</summary>
public sealed class StateArray {
  private readonly NativeHandle owner;
  private readonly IntPtr address;
  private readonly long size;  // kept apart from Dims, which callers can modify

  internal StateArray(NativeHandle owner, DType dtype, long[] dims, IntPtr address) {
    this.owner = owner;
    this.address = address;
    DType = dtype;
    Dims = dims;
    size = ScaleTrain.View.SizeOf(dims);
  }

  internal static IReadOnlyDictionary<string, StateArray> All(NativeHandle owner, Record record) {
    var all = new Dictionary<string, StateArray>();
    for (long left = record.Integer(); left > 0; --left) {
      string name = record.Text();
      DType dtype = NativeArrays.Next(ref record, out long[] dims, out long bytes, out IntPtr address);
      all[name] = new StateArray(owner, dtype, dims, address);
    }
    return all;
  }

  /// <summary>The type of the elements.</summary>
  public DType DType { get; }
  /// <summary>The dims, outermost first.</summary>
  public long[] Dims { get; }

  /// <summary>The elements in place. The memory stays valid as long as the returned <c>Memory</c> is referenced, even after its owner is
  /// disposed. Keep the <c>Memory</c> as long as its spans.</summary>
  public Memory<T> Memory<T>() where T : struct {
    DTypes.RequireFit(DType, typeof(T));
    return new NativeMemory<T>(owner.Open, address, size).Memory;
  }

  /// <summary>For calls that take arrays, such as <see cref="Checkpoint.Save"/> and <see cref="Checkpoint.Load"/>.</summary>
  public View View() {
    return ScaleTrain.View.Owned(new OwnedMemory(owner, address), DType, (long[])Dims.Clone(), size * DTypes.BytesOf(DType));
  }

  /// <summary>A copy in a C# array, as a view.</summary>
  internal View Copy() {
    switch (DType) {
      case DType.F32:
        return ScaleTrain.View.Of(ToArray<float>()).Reshape(Dims);
      case DType.F64:
        return ScaleTrain.View.Of(ToArray<double>()).Reshape(Dims);
      case DType.I64:
        return ScaleTrain.View.Of(ToArray<long>()).Reshape(Dims);
      default:
        return ScaleTrain.View.Of(ToArray<byte>()).Reshape(Dims);
    }
  }

  /// <summary>A copy of the elements.</summary>
  public T[] ToArray<T>() where T : struct {
    DTypes.RequireFit(DType, typeof(T));
    return NativeMemory<T>.Copy(owner.Open, address, size);
  }
}

}
