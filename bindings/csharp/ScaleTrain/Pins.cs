using System;
using System.Buffers;
using System.Collections.Generic;
using System.Runtime.ExceptionServices;
using System.Runtime.InteropServices;

namespace ScaleTrain {

/// <summary>Memory that stays in place until <see cref="Free"/>.</summary>
internal struct Pin {
  private GCHandle array;
  private MemoryHandle memory;
  internal IntPtr Address;

  internal static unsafe Pin Of(object source) {
    var pin = new Pin();
    if (source is Array array) {
      pin.array = GCHandle.Alloc(array, GCHandleType.Pinned);
      if (array.LongLength > 0) pin.Address = pin.array.AddrOfPinnedObject();
    } else if (source is Pinnable pinnable) {
      pin.memory = pinnable.Pin();
      pin.Address = new IntPtr(pin.memory.Pointer);
    }
    return pin;
  }

  internal void Free() {
    if (array.IsAllocated) array.Free();
    memory.Dispose();
    memory = default(MemoryHandle);
  }
}

/// <summary>The arrays of a call, pinned and described for native code. For one call they are borrowed: they reuse this thread's spare object and
/// do not allocate. Held ones stay pinned until the library releases them.</summary>
internal sealed unsafe class Pins : IDisposable {
  [ThreadStatic] private static Pins spare;

  private Pin[] pins = new Pin[4];
  private int count;
  private IntPtr block;  // a RawViews, then a RawView per array, then their names
  private long room;
  private bool isSpare, isUsed = true;

  /// <summary>An empty object for one call.</summary>
  internal static Pins Rent() {
    Pins mine = spare ?? new Pins { isSpare = true };
    spare = null;
    mine.isUsed = true;
    return mine;
  }

  internal static Pins Borrow(View view, string name) {
    Pins mine = Rent();
    try {
      mine.Make(1, 0);
      mine.Add(Handle.Given(view, name));
    } catch {
      mine.Dispose();
      throw;
    }
    return mine;
  }

  internal static Pins Borrow(View[] views, string name) {
    Pins mine = Rent();
    try { mine.AddAll(views, name, false); } catch {
      mine.Dispose();
      throw;
    }
    return mine;
  }

  internal static Pins Borrow(Batch batch) {
    Pins mine = Rent();
    try { mine.AddAll(batch); } catch {
      mine.Dispose();
      throw;
    }
    return mine;
  }

  /// <summary>Pins arrays until the result is disposed.</summary>
  internal static Pins Hold(IReadOnlyList<View> views, string name, bool mayMiss) {
    var mine = new Pins();
    try { mine.AddAll(views, name, mayMiss); } catch {
      mine.Dispose();
      throw;
    }
    return mine;
  }

  internal static Pins Hold(Batch batch) {
    var mine = new Pins();
    try { mine.AddAll(batch); } catch {
      mine.Dispose();
      throw;
    }
    return mine;
  }

  private Pins() {}

  // Does not unpin: native code may still use the arrays. Only Dispose unpins, which the end of the native object calls.
  ~Pins() { Marshal.FreeHGlobal(block); }

  /// <summary>The first array, for a call that takes one.</summary>
  internal IntPtr First { get { return (IntPtr)Views; } }
  /// <summary>All arrays, for a call that takes a list or named arrays.</summary>
  internal IntPtr All { get { return block; } }
  /// <summary>The array at a place; zero if place is negative.</summary>
  internal IntPtr At(int place) { return place < 0 ? IntPtr.Zero : (IntPtr)(Views + place); }

  /// <summary>Reserves memory for this many arrays and bytes of names. Must be called before the first Add.</summary>
  internal void Make(int arrays, long names) {
    long wanted = sizeof(RawViews) + arrays * (long)sizeof(RawView) + names;
    if (wanted > room) {
      Marshal.FreeHGlobal(block);
      block = IntPtr.Zero;
      room = 0;
      block = Marshal.AllocHGlobal(new IntPtr(wanted));
      room = wanted;
    }
    if (pins.Length < arrays) pins = new Pin[arrays];
    var head = (RawViews*)block;
    head->Count = 0;
    head->Views = (RawView*)(head + 1);
  }

  /// <summary>Adds an array and returns its place.</summary>
  internal int Add(View view) {
    view.Describe(Views + count, out pins[count]);
    ((RawViews*)block)->Count = count + 1;
    return count++;
  }

  /// <summary>The same; -1 for null.</summary>
  internal int AddSome(View view) { return view == null ? -1 : Add(view); }

  public void Dispose() {
    if (!isUsed) return;  // already disposed; the object may belong to another call by now
    isUsed = false;
    Exception first = null;
    for (int i = 0; i < count; ++i) {
      try { pins[i].Free(); } catch (Exception thrown) { first = first ?? thrown; }  // a MemoryManager of the program threw; free the others first
      pins[i] = default(Pin);
    }
    count = 0;
    if (isSpare && spare == null) spare = this;
    if (first != null) ExceptionDispatchInfo.Capture(first).Throw();
  }

  /// <summary>Disposes without throwing, for calls by native code, the garbage collector and <c>Dispose</c>.</summary>
  internal void Drop() {
    try { Dispose(); } catch (Exception) {}
  }

  private RawView* Views { get { return ((RawViews*)block)->Views; } }

  private void AddAll(IReadOnlyList<View> views, string name, bool mayMiss) {
    Handle.Given(views, name);
    Make(views.Count, 0);
    for (int i = 0; i < views.Count; ++i) {
      View view = views[i];
      if (view != null) Add(view);
      else if (mayMiss) AddNone();
      else throw new InvalidArgumentException(name + "[" + i + "] is null");
    }
  }

  private void AddNone() {
    RawView* none = Views + count;
    *none = new RawView { DType = (int)DType.F32, Writable = 1 };
    pins[count] = default(Pin);
    ((RawViews*)block)->Count = ++count;
  }

  private void AddAll(Batch batch) {
    Batch.Entry[] entries = batch.Entries;
    long names = 0;
    for (int i = 0; i < entries.Length; ++i) names += entries[i].Utf8.Length;
    Make(entries.Length, names);
    var name = (byte*)(Views + entries.Length);
    for (int i = 0; i < entries.Length; ++i) {
      Batch.Entry entry = entries[i];
      int place = Add(entry.View);
      Views[place].Name = (IntPtr)name;
      for (int k = 0; k < entry.Utf8.Length; ++k) *name++ = entry.Utf8[k];
    }
  }
}

}
