using System;
using System.Collections.Generic;

namespace ScaleTrain {

/// <summary>Arrays that the library looks at beyond the call that gave them: forward's until the backward behind it, those of a step in slices until
/// it is whole.</summary>
internal sealed class LastingPins {
  private readonly NativeHandle owner;
  private readonly List<Pins> pins = new List<Pins>();
  private Batch.Entry[] last;

  internal LastingPins(NativeHandle owner) { this.owner = owner; }

  /// <summary>The call on a batch that is pinned until <see cref="End"/>; the same batch again stays as it is. What the library refuses is let go at
  /// once. What a callback throws says nothing about that: the call may be done all the same.</summary>
  internal Record For(Batch batch, Func<IntPtr, Record> call) {
    if (pins.Count > 0 && last == batch.Entries) return call(pins[pins.Count - 1].All);
    Batch.Entry[] entries = batch.Entries;
    Pins made = Pins.Hold(batch);
    bool isRefused = false;
    try {
      return call(made.All);
    } catch (ScaleTrainException) {
      isRefused = true;
      throw;
    } finally {
      if (isRefused) made.Dispose();
      else Keep(made, entries);
    }
  }

  /// <summary>Only the last is looked at from now on.</summary>
  internal void EndAllButLast() {
    for (; pins.Count > 1; pins.RemoveAt(0)) owner.GiveBack(pins[0]);
  }

  internal void End() {
    foreach (Pins one in pins) owner.GiveBack(one);
    pins.Clear();
    last = null;
  }

  private void Keep(Pins made, Batch.Entry[] entries) {
    owner.Lend(made);
    pins.Add(made);
    last = entries;
  }
}

}
