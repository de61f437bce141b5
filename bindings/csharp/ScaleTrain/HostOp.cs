using System;

namespace ScaleTrain {

/// <summary>Dtype and dims of an input or output of an op. A negative first dimension -n means n times the batch size.</summary>
public struct OpType {
  /// <summary>The type of the elements.</summary>
  public DType DType { get; }
  /// <summary>The dims, outermost first.</summary>
  public long[] Dims { get; }

  /// <summary>A type with this dtype and these dims.</summary>
  public OpType(DType dtype, params long[] dims) {
    DType = dtype;
    Dims = Handle.Given(dims, "dims");
  }
}

/// <summary>A custom op; <see cref="Context.RegisterOp"/> gives it a name. It is called on threads of the library. An exception that it throws is
/// rethrown by the call that ran it.</summary>
public interface IHostOp {
  /// <summary>The types of the outputs, computed from those of the inputs. Must be a pure function.</summary>
  OpType[] Shape(OpType[] inputs);
  /// <summary>Computes the outputs.</summary>
  void Forward(BorrowedArray[] inputs, BorrowedArray[] outputs);
}

/// <summary>A custom op with a gradient.</summary>
public interface IDifferentiableHostOp : IHostOp {
  /// <summary>Computes those <paramref name="dInputs"/> that are not null; null entries need no gradient.</summary>
  void Backward(BorrowedArray[] inputs, BorrowedArray[] outputs, BorrowedArray[] dOutputs, BorrowedArray[] dInputs);
}

/// <summary>Calls of custom ops by native code.</summary>
internal static unsafe class HostOps {
  [MonoPInvokeCallback(typeof(Bridge.ShapeCall))]
  internal static IntPtr Shape(IntPtr user, long n, RawView* inputs, long m, RawView* outputs) {
    try {
      var given = new OpType[n];
      for (int i = 0; i < given.Length; ++i) given[i] = new OpType((DType)inputs[i].DType, RawView.DimsOf(inputs + i));
      OpType[] made = Bridge.Target<IHostOp>(user).Shape(given);
      if (made == null || made.Length != m) throw new InvalidArgumentException("IHostOp.Shape must return " + m + " types, one per output, got " + (made == null ? 0 : made.Length));
      for (int i = 0; i < made.Length; ++i) {
        long[] dims = Handle.Given(made[i].Dims, "dims of output " + i);
        if (dims.Length > RawView.MaxRank) throw new InvalidArgumentException("IHostOp.Shape must return ranks of at most " + RawView.MaxRank + ", got " + dims.Length);
        outputs[i].DType = (int)made[i].DType;
        outputs[i].Rank = dims.Length;
        for (int k = 0; k < dims.Length; ++k) outputs[i].Dims[k] = dims[k];
      }
      return IntPtr.Zero;
    } catch (Exception exception) { return Bridge.Thrown(exception); }
  }

  [MonoPInvokeCallback(typeof(Bridge.ForwardCall))]
  internal static IntPtr Forward(IntPtr user, long n, RawView* inputs, long m, RawView* outputs) {
    BorrowedArray[] given = null, made = null;
    try {
      given = BorrowedArray.Of(n, inputs, true);
      made = BorrowedArray.Of(m, outputs, false);
      Bridge.Target<IHostOp>(user).Forward(given, made);
      return IntPtr.Zero;
    } catch (Exception exception) { return Bridge.Thrown(exception); } finally {
      BorrowedArray.End(given);
      BorrowedArray.End(made);
    }
  }

  [MonoPInvokeCallback(typeof(Bridge.BackwardCall))]
  internal static IntPtr Backward(IntPtr user, long n, RawView* inputs, long m, RawView* outputs, RawView* dOutputs, RawView* dInputs) {
    BorrowedArray[] given = null, made = null, above = null, below = null;
    try {
      given = BorrowedArray.Of(n, inputs, true);
      made = BorrowedArray.Of(m, outputs, true);
      above = BorrowedArray.Of(m, dOutputs, true);
      below = BorrowedArray.Of(n, dInputs, false);
      Bridge.Target<IDifferentiableHostOp>(user).Backward(given, made, above, below);
      return IntPtr.Zero;
    } catch (Exception exception) { return Bridge.Thrown(exception); } finally {
      BorrowedArray.End(given);
      BorrowedArray.End(made);
      BorrowedArray.End(above);
      BorrowedArray.End(below);
    }
  }
}

}
