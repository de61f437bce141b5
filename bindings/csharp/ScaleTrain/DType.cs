using System;

namespace ScaleTrain {

/// <summary>The type of an array's elements.</summary>
public enum DType {
  /// <summary>float</summary>
  F32 = 1,
  /// <summary>double</summary>
  F64 = 2,
  /// <summary>bfloat16, as its bits in a ushort</summary>
  Bf16 = 3,
  /// <summary>IEEE half, as its bits in a ushort</summary>
  F16 = 4,
  /// <summary>int</summary>
  I32 = 5,
  /// <summary>long</summary>
  I64 = 6,
  /// <summary>byte</summary>
  U8 = 7,
  /// <summary>bool</summary>
  Bool = 8
}

internal static class DTypes {
  /// <summary>Bytes of one element.</summary>
  internal static int BytesOf(DType dtype) {
    switch (dtype) {
      case DType.F64:
      case DType.I64: return 8;
      case DType.F32:
      case DType.I32: return 4;
      case DType.Bf16:
      case DType.F16: return 2;
      case DType.U8:
      case DType.Bool: return 1;
      default: throw new InvalidArgumentException("dtype must be a value of DType, got " + (int)dtype);
    }
  }

  /// <summary>The dtype of a C# type; null if it has none.</summary>
  internal static DType? Of(Type type) {
    if (type == typeof(float)) return DType.F32;
    if (type == typeof(double)) return DType.F64;
    if (type == typeof(int)) return DType.I32;
    if (type == typeof(long)) return DType.I64;
    if (type == typeof(byte)) return DType.U8;
    if (type == typeof(bool)) return DType.Bool;
    return null;
  }

  /// <summary>Bytes of one element of a C# type.</summary>
  internal static int BytesOfType(Type type) { return type == typeof(ushort) ? 2 : BytesOf(Require(type)); }

  internal static DType Require(Type type) {
    return Of(type) ?? throw new InvalidArgumentException("the elements are " + type.Name + ", which has no dtype; use float, double, int, long, byte or bool; " +
                                                          "for bf16 and f16 pass their bits: View.Bf16(ushort[]), View.F16(ushort[])");
  }

  /// <summary>Whether memory of this dtype may be accessed as elements of that type.</summary>
  internal static bool Fits(DType dtype, Type type) {
    DType? own = Of(type);
    return own == dtype || (type == typeof(ushort) && (dtype == DType.Bf16 || dtype == DType.F16));
  }

  internal static void RequireFit(DType dtype, Type type) {
    if (!Fits(dtype, type)) throw new InvalidArgumentException("the array is " + dtype + ", and cannot be accessed as " + type.Name);
  }
}

}
