using System;

namespace ScaleTrain {

/// <summary>Dtype and dims that an op takes or gives. A first dimension below 0 is that many times the batch.</summary>
public struct OpType {
  /// <summary>Of its elements.</summary>
  public DType DType { get; }
  /// <summary>Outermost first.</summary>
  public long[] Dims { get; }

  /// <summary>Both.</summary>
  public OpType(DType dtype, params long[] dims) {
    DType = dtype;
    Dims = Handle.Given(dims, "dims");
  }
}

/// <summary>An op of the program's own; <see cref="Context.RegisterOp"/> gives it a name. What it throws arrives at the call that ran it. It is
/// called from threads of the library's.</summary>
public interface IHostOp {
  /// <summary>Types of the outputs from those of the inputs: a pure function.</summary>
  OpType[] Shape(OpType[] inputs);
  /// <summary>Fills the outputs.</summary>
  void Forward(Lent[] inputs, Lent[] outputs);
}

/// <summary>One that has a gradient.</summary>
public interface IDifferentiableHostOp : IHostOp {
  /// <summary>Fills those of <paramref name="dInputs"/> that are not null; a null one wants no gradient.</summary>
  void Backward(Lent[] inputs, Lent[] outputs, Lent[] dOutputs, Lent[] dInputs);
}

/// <summary>As native code calls them.</summary>
internal static unsafe class HostOps {
  [MonoPInvokeCallback(typeof(Bridge.ShapeCall))]
  internal static IntPtr Shape(IntPtr user, long n, RawView* inputs, long m, RawView* outputs) {
    try {
      var given = new OpType[n];
      for (int i = 0; i < given.Length; ++i) given[i] = new OpType((DType)inputs[i].DType, RawView.DimsOf(inputs + i));
      OpType[] made = Bridge.Target<IHostOp>(user).Shape(given);
      if (made == null || made.Length != m) throw new InvalidArgumentException("IHostOp.Shape gave " + (made == null ? 0 : made.Length) + " types for " + m + " outputs");
      for (int i = 0; i < made.Length; ++i) {
        long[] dims = Handle.Given(made[i].Dims, "dims of output " + i);
        if (dims.Length > RawView.MaxRank) throw new InvalidArgumentException("IHostOp.Shape gave rank " + dims.Length + ", above " + RawView.MaxRank);
        outputs[i].DType = (int)made[i].DType;
        outputs[i].Rank = dims.Length;
        for (int k = 0; k < dims.Length; ++k) outputs[i].Dims[k] = dims[k];
      }
      return IntPtr.Zero;
    } catch (Exception exception) { return Bridge.Thrown(exception); }
  }

  [MonoPInvokeCallback(typeof(Bridge.ForwardCall))]
  internal static IntPtr Forward(IntPtr user, long n, RawView* inputs, long m, RawView* outputs) {
    Lent[] given = null, made = null;
    try {
      given = Lent.Of(n, inputs, true);
      made = Lent.Of(m, outputs, false);
      Bridge.Target<IHostOp>(user).Forward(given, made);
      return IntPtr.Zero;
    } catch (Exception exception) { return Bridge.Thrown(exception); } finally {
      Lent.End(given);
      Lent.End(made);
    }
  }

  [MonoPInvokeCallback(typeof(Bridge.BackwardCall))]
  internal static IntPtr Backward(IntPtr user, long n, RawView* inputs, long m, RawView* outputs, RawView* dOutputs, RawView* dInputs) {
    Lent[] given = null, made = null, above = null, below = null;
    try {
      given = Lent.Of(n, inputs, true);
      made = Lent.Of(m, outputs, true);
      above = Lent.Of(m, dOutputs, true);
      below = Lent.Of(n, dInputs, false);
      Bridge.Target<IDifferentiableHostOp>(user).Backward(given, made, above, below);
      return IntPtr.Zero;
    } catch (Exception exception) { return Bridge.Thrown(exception); } finally {
      Lent.End(given);
      Lent.End(made);
      Lent.End(above);
      Lent.End(below);
    }
  }
}

}
