using System;
using System.Collections.Generic;

namespace ScaleTrain {

/// <summary>An array of the state of an optimizer or an accumulator: their own memory.</summary>
public sealed class StateArray {
  private readonly NativeHandle owner;
  private readonly IntPtr address;
  private readonly long size;  // dims are an array, and whoever gets them may write to them

  internal StateArray(NativeHandle owner, DType dtype, long[] dims, IntPtr address) {
    this.owner = owner;
    this.address = address;
    DType = dtype;
    Dims = dims;
    size = ScaleTrain.View.SizeOf(dims);
  }

  internal static IReadOnlyDictionary<string, StateArray> All(NativeHandle owner, Record told) {
    var all = new Dictionary<string, StateArray>();
    for (long left = told.Integer(); left > 0; --left) {
      string name = told.Text();
      DType dtype = NativeArrays.Next(ref told, out long[] dims, out long bytes, out IntPtr address);
      all[name] = new StateArray(owner, dtype, dims, address);
    }
    return all;
  }

  /// <summary>What its elements are.</summary>
  public DType DType { get; }
  /// <summary>Outermost first.</summary>
  public long[] Dims { get; }

  /// <summary>Its elements, where they lie. Keeps the memory in place, also after its owner is disposed of, while this <c>Memory</c> is held: hold on
  /// to it as long as to spans of it.</summary>
  public Memory<T> Memory<T>() where T : struct {
    DTypes.RequireFit(DType, typeof(T));
    return new NativeMemory<T>(owner.Open, address, size).Memory;
  }

  /// <summary>For calls that take arrays, such as <see cref="Checkpoint.Save"/> and <see cref="Checkpoint.Load"/>.</summary>
  public View View() {
    return ScaleTrain.View.Owned(new OwnedMemory(owner, address), DType, (long[])Dims.Clone(), size * DTypes.BytesOf(DType));
  }

  /// <summary>The same in memory of C#'s.</summary>
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

  /// <summary>A copy of its elements.</summary>
  public T[] ToArray<T>() where T : struct {
    DTypes.RequireFit(DType, typeof(T));
    return NativeMemory<T>.Copy(owner.Open, address, size);
  }
}

}
