using System;

namespace ScaleTrain {

/// <summary>Which functions of the C ABI a member is; a test compares all of them with the library's symbols.</summary>
[AttributeUsage(AttributeTargets.Class | AttributeTargets.Method | AttributeTargets.Constructor | AttributeTargets.Property)]
public sealed class OfCAttribute : Attribute {
  /// <summary>Names as in <c>scaletrain.h</c>.</summary>
  public OfCAttribute(params string[] functions) { Functions = functions; }
  /// <summary>Names as in <c>scaletrain.h</c>.</summary>
  public string[] Functions { get; }
}

/// <summary>Says to ahead-of-time compilers (Mono's, Unity's) that native code calls this static method.</summary>
[AttributeUsage(AttributeTargets.Method)]
internal sealed class MonoPInvokeCallbackAttribute : Attribute {
  internal MonoPInvokeCallbackAttribute(Type signature) { Signature = signature; }
  internal Type Signature { get; }
}

}
