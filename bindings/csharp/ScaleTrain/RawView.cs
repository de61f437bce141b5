using System;
using System.Runtime.InteropServices;

namespace ScaleTrain {

/// <summary>Describes an array to native code (native/array.hpp has the same struct).</summary>
[StructLayout(LayoutKind.Sequential)]
internal unsafe struct RawView {
  internal const int MaxRank = 8;

  internal int DType;
  internal int Rank;
  internal int HasStrides;
  internal int Writable;
  internal fixed long Dims[MaxRank];
  internal fixed long Strides[MaxRank];
  internal IntPtr Data;
  internal long Bytes;
  internal IntPtr Name;
  internal int Device;
  internal int Reserved;

  internal static long[] DimsOf(RawView* view) {
    var dims = new long[view->Rank];
    for (int i = 0; i < dims.Length; ++i) dims[i] = view->Dims[i];
    return dims;
  }
}

/// <summary>A list of views.</summary>
[StructLayout(LayoutKind.Sequential)]
internal unsafe struct RawViews {
  internal long Count;
  internal RawView* Views;
}

}
