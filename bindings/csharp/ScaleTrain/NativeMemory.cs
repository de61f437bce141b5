using System;
using System.Buffers;

namespace ScaleTrain {

/// <summary>Memory of the library as a C# <c>Memory</c>. Its owner is deleted only when this is gone too, even if it has been disposed.</summary>
internal sealed unsafe class NativeMemory<T> : MemoryManager<T> where T : struct {
  private readonly NativeHandle owner;
  private readonly IntPtr address;
  private readonly int length;
  private bool held;

  internal NativeMemory(NativeHandle owner, IntPtr address, long length) {
    if (length > int.MaxValue) throw new InvalidArgumentException("a Memory holds at most 2147483647 elements, got " + length + "; use View()");
    this.owner = owner;
    this.address = address;
    this.length = (int)length;
    try { owner.DangerousAddRef(ref held); } catch (ObjectDisposedException) { throw Failure.Closed(); }
  }

  ~NativeMemory() { Dispose(false); }

  /// <summary>A copy of the elements.</summary>
  internal static T[] Copy(NativeHandle owner, IntPtr address, long length) {
    var memory = new NativeMemory<T>(owner, address, length);
    try { return memory.GetSpan().ToArray(); } finally {
      memory.Dispose(true);
      GC.SuppressFinalize(memory);
    }
  }

  public override Span<T> GetSpan() { return new Span<T>((void*)address, length); }

  public override MemoryHandle Pin(int elementIndex = 0) {
    if (elementIndex < 0 || elementIndex > length) throw new ArgumentOutOfRangeException(nameof(elementIndex));
    return new MemoryHandle((byte*)address + elementIndex * (long)DTypes.BytesOfType(typeof(T)), default(System.Runtime.InteropServices.GCHandle), this);
  }

  public override void Unpin() {}

  protected override void Dispose(bool disposing) {
    if (!held) return;
    held = false;
    owner.DangerousRelease();
  }
}

/// <summary>Memory of the library for one call. Its owner cannot be deleted while it is pinned.</summary>
internal sealed unsafe class OwnedMemory : Pinnable {
  private readonly NativeHandle owner;
  private readonly IntPtr address;

  internal OwnedMemory(NativeHandle owner, IntPtr address) {
    this.owner = owner;
    this.address = address;
  }

  internal override MemoryHandle Pin() { return new MemoryHandle((void*)address, default(System.Runtime.InteropServices.GCHandle), new Hold(owner)); }

  private sealed class Hold : IPinnable {
    private readonly NativeHandle owner;

    internal Hold(NativeHandle owner) {
      bool held = false;
      try { owner.Open.DangerousAddRef(ref held); } catch (ObjectDisposedException) { throw Failure.Closed(); }
      this.owner = owner;
    }

    public MemoryHandle Pin(int elementIndex) { throw new NotSupportedException(); }
    public void Unpin() { owner.DangerousRelease(); }
  }
}

}
