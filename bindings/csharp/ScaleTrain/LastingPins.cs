using System;
using System.Collections.Generic;

namespace ScaleTrain {

/// <summary>Pins arrays that the library reads after the call that passed them: those of Forward until Backward, those of Advance until the step is
/// finished.</summary>
internal sealed class LastingPins {
  private readonly NativeHandle owner;
  private readonly List<Pins> pins = new List<Pins>();
  private Batch.Entry[] last;

  internal LastingPins(NativeHandle owner) { this.owner = owner; }

  /// <summary>Makes a call on a batch, which stays pinned until <see cref="End"/>; a batch that is already pinned is reused. If the library
  /// refuses the call, the batch is unpinned at once. After an exception of a callback it stays pinned, since the call may have taken
  /// effect.</summary>
  internal T For<T>(Batch batch, Func<IntPtr, T> call) {
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

  /// <summary>Unpins all but the last batch, the only one that the library still reads.</summary>
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
