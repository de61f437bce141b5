using System;

namespace ScaleTrain {

/// <summary>Names the C functions that a member calls. A test compares them with the library's symbols.</summary>
[AttributeUsage(AttributeTargets.Class | AttributeTargets.Method | AttributeTargets.Constructor | AttributeTargets.Property)]
public sealed class OfCAttribute : Attribute {
  /// <summary>Names of C functions, as in <c>scaletrain.h</c>.</summary>
  public OfCAttribute(params string[] functions) { Functions = functions; }
  /// <summary>Names of C functions, as in <c>scaletrain.h</c>.</summary>
  public string[] Functions { get; }
}

/// <summary>Tells ahead-of-time compilers (Mono, Unity) that native code calls this static method.</summary>
[AttributeUsage(AttributeTargets.Method)]
internal sealed class MonoPInvokeCallbackAttribute : Attribute {
  internal MonoPInvokeCallbackAttribute(Type signature) { Signature = signature; }
  internal Type Signature { get; }
}

}
